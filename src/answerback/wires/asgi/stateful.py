"""MCP over HTTP, the legacy era: sessions whose id holds them, streams that can be resumed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...mcp import params
from ...mcp.jsonrpc import parse
from ...mcp.mcp_peer import DEAF, Exchange
from ...mcp.messages import (
    INVALID_REQUEST,
    Message,
    Notification,
    Request,
    Response,
    RpcError,
    error_frame,
    result_frame,
)
from ...mcp.modern import meta_of
from ...mcp.subscriptions import change_frame
from ...registry import Change
from ...versions import LEGACY
from .call_watch import Vigil, Watchman
from .http_error import HttpError, empty
from .request import IN_JSON, Incoming
from .session_sync import OF_SESSION, Telling
from .sessions import SESSION, Visitor, Visitors
from .sse import KEEP_ALIVE, Answer, Log, write_until_gone
from .worker_bus import Bus

if TYPE_CHECKING:
    from ...app import App
    from ...mcp.engine import Engine
    from ...mcp.signing import Sealer


class Legacy:
    def __init__(
        self, app: App, engine: Engine, sealer: Sealer, bus: Bus, watchman: Watchman
    ) -> None:
        self._app = app
        self._engine = engine
        self._watchman = watchman
        self._visitors = Visitors(sealer, bus.number)
        self._telling = Telling(app, bus, self._visitors)
        self.hear = self._telling.hear
        self._listening: set[Log] = set()

    async def answer(self, request: Request, meta: params.Meta | None, incoming: Incoming) -> None:
        if request.method == "initialize":
            await self._initialize(request, incoming)
            return
        visitor = self._visitors.at(incoming.headers)
        if (
            self._engine.is_quick(request)
            and request.method not in OF_SESSION
            and not _names_events_first(incoming)
            and (visitor.nonce, request.id) not in self._telling.running
        ):
            exchange = Exchange(request.id, visitor.version, visitor.client, DEAF)
            exchange.caller = incoming.caller
            frame = await self._engine.respond(request, exchange)
            await incoming.respond(200, IN_JSON, frame)
            return
        answer = self._answer(visitor, incoming)
        begin, receive = answer.begin, incoming.receive
        with Vigil(self._watchman, receive, silence=KEEP_ALIVE, on_silence=begin, on_gone=None):
            last = await self._frame(request, meta, visitor, answer, incoming.caller)
        await answer.finish(last)

    async def take(self, message: Notification | Response, incoming: Incoming) -> None:
        """What is not answered, only acknowledged."""
        await self._telling.take(message, self._visitors.at(incoming.headers))
        await empty(incoming, 202)

    async def post_batch(self, texts: list[bytes], incoming: Incoming) -> None:
        visitor = self._visitors.at(incoming.headers)
        if not visitor.version.batches or not texts:
            what = "The batch is empty" if not texts else "This protocol version has no batches"
            raise HttpError(400, RpcError(INVALID_REQUEST, what))
        messages = [_parsed(text) for text in texts]
        told = [each for each in messages if isinstance(each, Notification | Response)]
        if len(told) == len(messages):
            for each in told:
                await self._telling.take(each, visitor)
            await empty(incoming, 202)
            return
        answer = self._answer(visitor, incoming)
        caller = incoming.caller
        said = [await self._part(each, visitor, answer, caller) for each in messages]
        frames = [frame for frame in said if frame is not None]
        await answer.finish(b"[%b]" % b",".join(frames) if frames else None)

    async def get(self, incoming: Incoming) -> None:
        """The stream for what the server says unasked; or the rest of one that broke off."""
        visitor = self._visitors.at(incoming.headers)
        if visitor.ticket is None:
            raise HttpError(405, RpcError(INVALID_REQUEST, "No session"), Allow="POST, DELETE")
        log, start = await self._telling.streams.resumed(visitor, incoming.headers)
        if log is not None:
            await self._write(log, incoming, start)
            return
        log = Log(asyncio.get_running_loop())
        stream = await self._telling.listen(visitor)

        def pass_on(change: Change) -> None:
            if self._visitors.wants(visitor, change) and self._telling.turns.has(stream):
                log.offer_or_end(change_frame(change))

        stop = self._app.changes.listen(pass_on)
        try:
            await self._write(log, incoming, start)
        finally:
            stop()
            self._telling.leave(stream)

    async def _write(self, log: Log, incoming: Incoming, start: int) -> None:
        self._listening.add(log)
        try:
            await write_until_gone(log, incoming, start=start)
        finally:
            self._telling.streams.forget(log)
            self._listening.discard(log)

    async def delete(self, incoming: Incoming) -> None:
        visitor = self._visitors.at(incoming.headers)
        if visitor.ticket is None:
            raise HttpError(400, RpcError(INVALID_REQUEST, "Missing Mcp-Session-Id"))
        await self._telling.end(visitor)
        await empty(incoming, 204)

    def close(self) -> None:
        """End the streams that would never end by themselves."""
        for log in self._listening:
            log.end()

    async def _initialize(self, request: Request, incoming: Incoming) -> None:
        try:
            session, result = self._engine.about.initialize(request.params)
        except RpcError as error:
            await incoming.respond(200, IN_JSON, error_frame(request.id, error))
            return
        id = (SESSION, self._visitors.welcome(session))
        await incoming.respond(200, (id, *IN_JSON), result_frame(request.id, result))

    def _answer(self, visitor: Visitor, incoming: Incoming) -> Answer:
        """Events at once for one who names them first; and a log to come back to, in a session."""
        if visitor.ticket is None:
            return Answer(incoming)
        asker = (self._telling.questions, visitor.nonce)
        if not _names_events_first(incoming):
            return Answer(incoming, asker=asker)
        log = self._telling.streams.new(visitor)
        prime = visitor.version is LEGACY["2025-11-25"]
        answer = Answer(incoming, log, prime=prime, asker=asker)
        answer.begin()
        return answer

    async def _frame(
        self,
        request: Request,
        meta: params.Meta | None,
        visitor: Visitor,
        answer: Answer,
        caller: str,
    ) -> bytes | None:
        if request.method in OF_SESSION:
            try:
                return result_frame(request.id, await self._telling.answer(request, visitor))
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
            if key in self._telling.running:
                busy = RpcError(INVALID_REQUEST, f"Request {request.id!r} is still running")
                return error_frame(request.id, busy)
            self._telling.running[key] = exchange
        frame = None
        try:
            frame = await self._engine.respond(request, exchange)
        except asyncio.CancelledError:
            if not exchange.cancelled:
                raise
        finally:
            self._telling.running.pop(key, None)
        if not exchange.cancelled:
            return frame
        # A tool may not let itself be cancelled; nobody waits for what it says all the same.
        task.uncancel()
        return None

    async def _part(
        self, message: Message | RpcError, visitor: Visitor, answer: Answer, caller: str
    ) -> bytes | None:
        """The answer to one message of a batch."""
        if isinstance(message, RpcError):
            return error_frame(message.id, message)
        if not isinstance(message, Request):
            await self._telling.take(message, visitor)
            return None
        if message.method == "initialize":
            odd = RpcError(INVALID_REQUEST, "initialize is not for batches")
            return error_frame(message.id, odd)
        try:
            meta = meta_of(message)
        except RpcError as error:
            return error_frame(message.id, error)
        return await self._frame(message, meta, visitor, answer, caller)


def _parsed(text: bytes) -> Message | RpcError:
    try:
        return parse(text)
    except RpcError as error:
        return error


def _names_events_first(incoming: Incoming) -> bool:
    return incoming.headers.get(b"accept", b"").lstrip().lower().startswith(b"text/event-stream")
