"""MCP over HTTP, the legacy era: sessions whose id holds them, streams that can be resumed."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from ...changes import Change
from ...mcp import headers as routing
from ...mcp import params
from ...mcp.exchange import Exchange
from ...mcp.messages import (
    INVALID_REQUEST,
    Id,
    Message,
    Notification,
    Request,
    Response,
    RpcError,
    error_frame,
    parse,
    request_frame,
    result_frame,
)
from ...mcp.modern import meta_of
from ...mcp.rounds import LIFETIME
from ...mcp.session import DEFAULT_LEVEL, Client
from ...mcp.sessions import Sessions
from ...mcp.subscriptions import change_frame
from ...mcp.tickets import Ticket
from ...questions import Declined
from ...versions import ASSUMED_LEGACY, LEGACY, Version
from .body import Headers, Receive, Send
from .bus import Answered, Bus, Cancelled, Ended, Follow, Levelled, Note, Said, Subscribed
from .events import KEEP_ALIVE, Answer, Log
from .refusals import HttpError, empty
from .vigil import Vigil, Watchman, gone

if TYPE_CHECKING:
    from ...app import App
    from ...mcp.engine import Engine
    from ...seal import Sealer

SESSION = b"mcp-session-id"
_DONE = b"{}"
_LONGEST_ID = 100
_LOGS = 256
"""So many streams can be resumed; an older one is forgotten."""
_KEPT = 32 * 1024 * 1024
"""Bytes of such streams."""


class Visitor(msgspec.Struct, frozen=True):
    """Who sent a request: one with a session, or anybody at some version."""

    ticket: Ticket | None
    version: Version

    @property
    def client(self) -> Client:
        return Client() if self.ticket is None else self.ticket.client

    @property
    def nonce(self) -> bytes:
        return b"" if self.ticket is None else self.ticket.nonce


class Legacy:
    def __init__(
        self, app: App, engine: Engine, sealer: Sealer, bus: Bus, watchman: Watchman
    ) -> None:
        self._watchman = watchman
        self._app = app
        self._engine = engine
        self._sealer = sealer
        self._bus = bus
        self._sessions = Sessions()
        self._running: dict[tuple[bytes, Id], Exchange] = {}
        self._asked: dict[tuple[bytes, Id], asyncio.Future[msgspec.Raw]] = {}
        self._logs: OrderedDict[str, tuple[bytes, Log]] = OrderedDict()
        self._listening: set[Log] = set()
        self._followed: dict[str, Log] = {}
        self._followers: set[asyncio.Task[None]] = set()
        # Bounded, so that a session which is never used again costs nothing for long.
        self._ticket = lru_cache(1024)(lambda id: Ticket.open(id.decode("latin-1"), sealer))

    async def post(
        self,
        message: Message,
        meta: params.Meta | None,
        headers: Headers,
        receive: Receive,
        send: Send,
    ) -> None:
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(message, send)
            return
        visitor = self._visitor(headers)
        if not isinstance(message, Request):
            await self._tell(message, visitor)
            await empty(send, 202)
            return
        answer = self._answer(visitor, headers, send)
        watchman = self._watchman
        begin = answer.begin
        with Vigil(watchman, receive, silence=KEEP_ALIVE, on_silence=begin, on_gone=None):
            frame = await self._frame(message, meta, visitor, answer)
        await answer.finish(frame)

    async def post_batch(self, texts: list[bytes], headers: Headers, send: Send) -> None:
        visitor = self._visitor(headers)
        if not visitor.version.batches or not texts:
            what = "The batch is empty" if not texts else "This protocol version has no batches"
            raise HttpError(400, RpcError(INVALID_REQUEST, what))
        answer = self._answer(visitor, headers, send)
        frames = [frame for text in texts if (frame := await self._part(text, visitor, answer))]
        if frames:
            await answer.finish(b"[%b]" % b",".join(frames))
        else:
            await empty(send, 202)

    async def get(self, headers: Headers, receive: Receive, send: Send) -> None:
        """The stream for what the server says unasked; or the rest of one that broke off."""
        visitor = self._visitor(headers)
        if visitor.ticket is None:
            raise HttpError(405, RpcError(INVALID_REQUEST, "No session"), Allow="POST, DELETE")
        log, start = await self._resumed(visitor, headers)
        if log is None:
            log = Log(asyncio.get_running_loop())
            stop = self._app.changes.listen(lambda change: self._hear(visitor, log, change))
        else:
            stop = _nothing
        self._listening.add(log)
        writing = asyncio.ensure_future(log.write_to(send, [], start=start, prime=False))
        leaving = asyncio.ensure_future(gone(receive))
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop()
            self._listening.discard(log)
            for task in (writing, leaving):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def delete(self, headers: Headers, send: Send) -> None:
        visitor = self._visitor(headers)
        if visitor.ticket is None:
            raise HttpError(400, RpcError(INVALID_REQUEST, "Missing Mcp-Session-Id"))
        await self._share(Ended(visitor.nonce))
        await empty(send, 204)

    def close(self) -> None:
        """End the streams that would never end by themselves."""
        for log in self._listening:
            log.end()

    async def _initialize(self, request: Request, send: Send) -> None:
        try:
            session, result = self._engine.initialize(request.params)
        except RpcError as error:
            await Answer(send, []).finish(error_frame(request.id, error))
            return
        ticket = Ticket.issue(session.version, session.client, home=self._bus.number)
        id = (SESSION, ticket.seal(self._sealer).encode())
        await Answer(send, [id]).finish(result_frame(request.id, result))

    def _visitor(self, headers: Headers) -> Visitor:
        id = headers.get(SESSION)
        if id is None:
            said = headers.get(routing.VERSION, b"").decode("latin-1").strip()
            return Visitor(None, LEGACY.get(said, ASSUMED_LEGACY))
        ticket = self._ticket(id) if len(id) < _LONGEST_ID else None
        if ticket is not None and not ticket.is_valid:
            ticket = None
        state = None if ticket is None else self._sessions.get(ticket.nonce)
        if ticket is None or (state is not None and state.ended):
            raise HttpError(404, RpcError(INVALID_REQUEST, "Session not found; initialize anew"))
        return Visitor(ticket, ticket.version)

    def _answer(self, visitor: Visitor, headers: Headers, send: Send) -> Answer:
        """Events at once for one who names them first; and a log to come back to, in a session."""
        if visitor.ticket is None:
            return Answer(send, [])
        events_first = headers.get(b"accept", b"").lstrip().startswith(b"text/event-stream")
        if not events_first:
            return Answer(send, [], ask=self._asking(visitor))
        log = self._kept_log(visitor)
        prime = visitor.version is LEGACY["2025-11-25"]
        answer = Answer(send, [], log, prime=prime, ask=self._asking(visitor))
        answer.begin()
        return answer

    def _kept_log(self, visitor: Visitor) -> Log:
        log = Log(asyncio.get_running_loop(), f"{self._bus.number}.{os.urandom(8).hex()}")
        assert log.id is not None
        self._logs[log.id] = (visitor.nonce, log)
        while len(self._logs) > _LOGS or sum(kept.size for _, kept in self._logs.values()) > _KEPT:
            self._logs.popitem(last=False)
        return log

    async def _resumed(self, visitor: Visitor, headers: Headers) -> tuple[Log | None, int]:
        """The stream that a client lost, and how far it had read; maybe another worker has it."""
        last = headers.get(b"last-event-id", b"").decode("ascii", "replace")
        id, _, number = last.rpartition("-")
        worker = id.partition(".")[0]
        if not (number.isdigit() and worker.isdigit() and len(number) < 10 and len(worker) < 5):
            return None, 0
        if int(worker) != self._bus.number:
            return await self._followed_log(id, int(worker), visitor, int(number)), 0
        owner, log = self._logs.get(id, (b"", None))
        return (log, int(number)) if owner == visitor.nonce else (None, 0)

    async def _followed_log(self, id: str, worker: int, visitor: Visitor, start: int) -> Log:
        """Here the stream has no id: its events would be numbered anew."""
        log = Log(asyncio.get_running_loop())
        reader = os.urandom(8).hex()
        self._followed[reader] = log
        await self._bus.tell(worker, Follow(id, visitor.nonce, start, self._bus.number, reader))
        return log

    async def _frame(
        self, request: Request, meta: params.Meta | None, visitor: Visitor, answer: Answer
    ) -> bytes | None:
        if request.method in _OF_SESSION:
            try:
                return result_frame(request.id, await self._within_session(request, visitor))
            except RpcError as error:
                return error_frame(request.id, error)
        exchange = Exchange(
            request.id, visitor.version, visitor.client, answer, level=self._level(visitor)
        )
        exchange.token = None if meta is None else meta.token
        return await self._run(request, exchange, visitor)

    async def _run(self, request: Request, exchange: Exchange, visitor: Visitor) -> bytes | None:
        """The answer, or None for what was cancelled."""
        task = asyncio.current_task()
        assert task is not None
        exchange.on_cancel = task.cancel
        key = (visitor.nonce, request.id)
        if visitor.ticket is not None:
            if key in self._running:
                busy = RpcError(INVALID_REQUEST, f"Request {request.id!r} is still running")
                return error_frame(request.id, busy)
            self._running[key] = exchange
        try:
            return await self._engine.respond(request, exchange)
        except asyncio.CancelledError:
            if exchange.cancelled:
                task.uncancel()
                return None
            raise
        finally:
            self._running.pop(key, None)

    def _level(self, visitor: Visitor) -> Any:
        state = None if visitor.ticket is None else self._sessions.get(visitor.nonce)
        return DEFAULT_LEVEL if state is None or state.level is None else state.level

    async def _within_session(self, request: Request, visitor: Visitor) -> bytes:
        if request.method == "logging/setLevel":
            level = params.read(request.params, params.SetLevel).level
            await self._share(Levelled(visitor.nonce, level))
        elif request.method != "ping":
            uri = params.read(request.params, params.ReadResource).uri
            wanted = request.method == "resources/subscribe"
            await self._share(Subscribed(visitor.nonce, uri, wanted))
        return _DONE

    async def _tell(self, message: Notification | Response, visitor: Visitor) -> None:
        if isinstance(message, Response):
            result = None if message.result is None else bytes(message.result)
            error = None if message.error is None else bytes(message.error)
            await self._share(Answered(visitor.nonce, message.id, result, error))
        elif message.method == "notifications/cancelled":
            with suppress(RpcError):
                id = params.read(message.params, params.Cancelled).id
                if id is not None:
                    await self._share(Cancelled(visitor.nonce, id))

    async def _share(self, note: Ended | Levelled | Subscribed | Cancelled | Answered) -> None:
        """Do it here, and in every other worker; one without a session has nothing to share."""
        if note.nonce:
            await self.hear(note)
            await self._bus.tell_all(note)

    async def hear(self, note: Note) -> None:
        """What a client said, to this worker or to another."""
        match note:
            case Ended(nonce):
                self._sessions.keep(nonce).ended = True
                for asked in [key for key in self._asked if key[0] == nonce]:
                    self._settle(Answered(*asked, None, None))
            case Levelled(nonce, level):
                self._sessions.keep(nonce).level = level
            case Subscribed(nonce, uri, wanted):
                uris = self._sessions.keep(nonce).subscriptions
                uris.add(uri) if wanted else uris.discard(uri)
                self._sessions.release(nonce)
            case Cancelled(nonce, id):
                if (nonce, id) in self._running:
                    self._running[nonce, id].cancel()
            case Answered():
                self._settle(note)
            case Follow():
                self._followers.add(task := asyncio.ensure_future(self._retell(note)))
                task.add_done_callback(self._followers.discard)
            case Said(reader, frame, last):
                self._retold(reader, frame, last)

    def _asking(self, visitor: Visitor) -> Any:
        async def ask(log: Log, method: str, asked: Any) -> msgspec.Raw:
            id = f"ask-{os.urandom(8).hex()}"
            answer = asyncio.get_running_loop().create_future()
            self._asked[visitor.nonce, id] = answer
            log.append(request_frame(id, method, asked))
            try:
                async with asyncio.timeout(LIFETIME):
                    result: msgspec.Raw = await answer
                return result
            except TimeoutError:
                raise Declined("The client did not answer") from None
            finally:
                self._asked.pop((visitor.nonce, id), None)

        return ask

    def _settle(self, note: Answered) -> None:
        answer = self._asked.get((note.nonce, note.id))
        if answer is None or answer.done():
            return
        if note.result is not None:
            answer.set_result(msgspec.Raw(note.result))
        else:
            answer.set_exception(Declined("The client did not answer"))

    async def _retell(self, follow: Follow) -> None:
        """Send what is said on a stream of ours to the worker that its client came back to."""
        owner, log = self._logs.get(follow.log, (b"", None))
        if log is not None and owner == follow.nonce:
            async for frame in log.read(follow.start):
                await self._bus.tell(follow.worker, Said(follow.reader, frame, last=False))
        await self._bus.tell(follow.worker, Said(follow.reader, b"", last=True))

    def _retold(self, reader: str, frame: bytes, last: bool) -> None:
        log = self._followed.get(reader)
        if log is None:
            return
        if last:
            log.end()
            del self._followed[reader]
        else:
            log.append(frame)

    def _hear(self, visitor: Visitor, log: Log, change: Change) -> None:
        assert visitor.ticket is not None
        if change.what == "resource":
            state = self._sessions.get(visitor.nonce)
            if state is None or change.uri not in state.subscriptions:
                return
        log.offer_or_end(change_frame(change))

    async def _part(self, text: bytes, visitor: Visitor, answer: Answer) -> bytes | None:
        """The answer to one message of a batch."""
        try:
            message = parse(text)
        except RpcError as error:
            return error_frame(error.id, error)
        if not isinstance(message, Request):
            await self._tell(message, visitor)
            return None
        if message.method == "initialize":
            odd = RpcError(INVALID_REQUEST, "initialize is not for batches")
            return error_frame(message.id, odd)
        try:
            meta = meta_of(message.params)
        except RpcError as error:
            return error_frame(message.id, error)
        return await self._frame(message, meta, visitor, answer)


_OF_SESSION = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)


def _nothing() -> None:
    pass
