"""MCP over HTTP, the legacy era: sessions whose id holds them, streams that can be resumed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ...changes import Change
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
    result_frame,
)
from ...mcp.modern import meta_of
from ...mcp.parsing import parse
from ...mcp.subscriptions import change_frame, subscribed_uri
from ...versions import LEGACY
from .asking import Questions
from .bus import Answered, Bus, Cancelled, Ended, Follow, Levelled, Note, Said, Subscribed
from .events import KEEP_ALIVE, Answer, Log, write_until_gone
from .incoming import Incoming
from .refusals import HttpError, empty
from .resuming import Streams
from .vigil import Vigil, Watchman
from .visitors import SESSION, Visitor, Visitors

if TYPE_CHECKING:
    from ...app import App
    from ...mcp.engine import Engine
    from ...seal import Sealer

_DONE = b"{}"


class Legacy:
    def __init__(
        self, app: App, engine: Engine, sealer: Sealer, bus: Bus, watchman: Watchman
    ) -> None:
        self._app = app
        self._engine = engine
        self._bus = bus
        self._watchman = watchman
        self._visitors = Visitors(sealer, bus.number)
        self._questions = Questions()
        self._streams = Streams(bus)
        self._running: dict[tuple[bytes, Id], Exchange] = {}
        self._listening: set[Log] = set()

    async def post(self, message: Message, meta: params.Meta | None, incoming: Incoming) -> None:
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(message, incoming)
            return
        visitor = self._visitors.at(incoming.headers)
        if not isinstance(message, Request):
            await self._tell(message, visitor)
            await empty(incoming, 202)
            return
        answer = self._answer(visitor, incoming)
        is_new = (visitor.nonce, message.id) not in self._running
        if is_new and message.method not in _OF_SESSION and self._engine.is_quick(message):
            # Nothing can come between, so nothing is watched or registered.
            exchange = self._visitors.exchange(message, meta, visitor, answer, incoming.caller)
            await answer.finish(await self._engine.respond(message, exchange))
            return
        begin, receive = answer.begin, incoming.receive
        with Vigil(self._watchman, receive, silence=KEEP_ALIVE, on_silence=begin, on_gone=None):
            frame = await self._frame(message, meta, visitor, answer, incoming.caller)
        await answer.finish(frame)

    async def post_batch(self, texts: list[bytes], incoming: Incoming) -> None:
        visitor = self._visitors.at(incoming.headers)
        if not visitor.version.batches or not texts:
            what = "The batch is empty" if not texts else "This protocol version has no batches"
            raise HttpError(400, RpcError(INVALID_REQUEST, what))
        answer = self._answer(visitor, incoming)
        frames = [frame for text in texts if (frame := await self._part(text, visitor, answer))]
        if frames:
            await answer.finish(b"[%b]" % b",".join(frames))
        else:
            await empty(incoming, 202)

    async def get(self, incoming: Incoming) -> None:
        """The stream for what the server says unasked; or the rest of one that broke off."""
        visitor = self._visitors.at(incoming.headers)
        if visitor.ticket is None:
            raise HttpError(405, RpcError(INVALID_REQUEST, "No session"), Allow="POST, DELETE")
        log, start = await self._streams.resumed(visitor, incoming.headers)
        if log is None:
            log = Log(asyncio.get_running_loop())
            stop = self._app.changes.listen(partial(_pass_on, self._visitors, visitor, log))
        else:
            stop = _nothing
        self._listening.add(log)
        try:
            await write_until_gone(log, incoming, start=start)
        finally:
            stop()
            self._listening.discard(log)

    async def delete(self, incoming: Incoming) -> None:
        visitor = self._visitors.at(incoming.headers)
        if visitor.ticket is None:
            raise HttpError(400, RpcError(INVALID_REQUEST, "Missing Mcp-Session-Id"))
        await self._share(Ended(visitor.nonce))
        await empty(incoming, 204)

    def close(self) -> None:
        """End the streams that would never end by themselves."""
        for log in self._listening:
            log.end()

    async def _initialize(self, request: Request, incoming: Incoming) -> None:
        try:
            session, result = self._engine.about.initialize(request.params)
        except RpcError as error:
            await Answer(incoming, []).finish(error_frame(request.id, error))
            return
        id = (SESSION, self._visitors.welcome(session))
        await Answer(incoming, [id]).finish(result_frame(request.id, result))

    def _answer(self, visitor: Visitor, incoming: Incoming) -> Answer:
        """Events at once for one who names them first; and a log to come back to, in a session."""
        if visitor.ticket is None:
            return Answer(incoming, [])
        accept = incoming.headers.get(b"accept", b"")
        events_first = accept.lstrip().startswith(b"text/event-stream")
        if not events_first:
            return Answer(incoming, [], ask=self._questions.to(visitor.nonce))
        log = self._streams.new(visitor)
        prime = visitor.version is LEGACY["2025-11-25"]
        answer = Answer(incoming, [], log, prime=prime, ask=self._questions.to(visitor.nonce))
        answer.begin()
        return answer

    async def _frame(
        self,
        request: Request,
        meta: params.Meta | None,
        visitor: Visitor,
        answer: Answer,
        caller: str = "",
    ) -> bytes | None:
        if request.method in _OF_SESSION:
            try:
                return result_frame(request.id, await self._within_session(request, visitor))
            except RpcError as error:
                return error_frame(request.id, error)
        exchange = self._visitors.exchange(request, meta, visitor, answer, caller)
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

    async def _within_session(self, request: Request, visitor: Visitor) -> bytes:
        if request.method == "logging/setLevel":
            level = params.read(request.params, params.SetLevel).level
            await self._share(Levelled(visitor.nonce, level))
        elif request.method != "ping":
            wanted = request.method == "resources/subscribe"
            if wanted:
                subscribed = self._visitors.subscriptions(visitor)
                uri = subscribed_uri(self._app, request.params, subscribed)
            else:
                uri = params.read(request.params, params.ReadResource).uri
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
            case Ended() | Levelled() | Subscribed():
                self._visitors.hear(note)
                if isinstance(note, Ended):
                    self._questions.give_up(note.nonce)
            case Cancelled(nonce, id):
                if (nonce, id) in self._running:
                    self._running[nonce, id].cancel()
            case Answered():
                self._questions.settle(note)
            case Follow() | Said():
                self._streams.hear(note)

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


def _pass_on(visitors: Visitors, visitor: Visitor, log: Log, change: Change) -> None:
    if visitors.wants(visitor, change):
        log.offer_or_end(change_frame(change))


def _nothing() -> None:
    pass
