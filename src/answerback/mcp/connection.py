"""One client at the other end of a pipe, in whichever era it speaks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ..calls.pipeline import without_loop
from . import params
from .engine import log_fault
from .jsonrpc import parse, parse_batch
from .mcp_peer import Exchange, Link
from .messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Id,
    Notification,
    Request,
    Response,
    RpcError,
    error_frame,
    result_frame,
)
from .modern import is_modern, meta_of, require, version_of
from .pipe_session import PipeSession
from .subscriptions import Subscription

if TYPE_CHECKING:
    from ..app import App
    from .engine import Engine


class Job(msgspec.Struct, frozen=True):
    """Answering one message; *name* is the tool that it runs, if it is one."""

    run: Callable[[], None]
    name: str = ""


class Connection:
    """Takes messages in and sends frames out; what may take long is given back as a job."""

    def __init__(
        self, app: App, engine: Engine, link: Link, settle: Callable[[Response], None]
    ) -> None:
        self._app = app
        self._engine = engine
        self._link = link
        self._settle = settle
        self._session = PipeSession(app, engine.about, link)
        self._running: dict[Id, Exchange] = {}

    def take(self, text: bytes) -> Job | None:
        """Answer a message at once, or give back the job of answering it."""
        try:
            texts = parse_batch(text)
            if texts is not None:
                return Job(partial(self._answer_batch, self._accepted(texts)))
            message = parse(text)
            if isinstance(message, Request):
                return self._take_request(message)
            self._tell(message)
        except RpcError as error:
            self._link.send(error_frame(error.id, error))
        except Exception:  # noqa: BLE001 -- a fault of ours ends one message, not the reading
            log_fault("a message")
            self._link.send(error_frame(None, RpcError(INTERNAL_ERROR, "Internal error")))
        return None

    def _take_request(self, request: Request) -> Job | None:
        """Registered as it is read, so that a cancellation read next finds it."""
        exchange = self._open(request)
        if exchange is None:
            self._link.send(result_frame(request.id, self._session.answer(request)))
            return None
        if request.method == "subscriptions/listen" and exchange.version.modern:
            self._listen(request, exchange)
            return None
        answer = partial(self._answer, request, exchange)
        if not self._engine.is_quick(request):
            return Job(answer, self._engine.tool_called(request))
        answer()
        return None

    def _listen(self, request: Request, exchange: Exchange) -> None:
        """It stays open until the client cancels it, or goes."""
        try:
            subscription = Subscription(self._app, request.id, request.params, self._link.send)
        except RpcError as error:
            del self._running[request.id]
            self._link.send(error_frame(request.id, error))
            return

        def end() -> None:
            subscription.end()
            self._running.pop(request.id, None)

        exchange.on_cancel = end

    def _answer(self, request: Request, exchange: Exchange) -> None:
        frame = self._frame(request, exchange)
        if frame is not None:
            self._link.send(frame)

    def _frame(self, request: Request, exchange: Exchange) -> bytes | None:
        """The answer, or None for what was cancelled meanwhile."""
        try:
            with exchange:
                frame = without_loop(self._engine.respond(request, exchange))
        finally:
            self._running.pop(request.id, None)
        return None if exchange.cancelled else frame

    def _open(self, request: Request) -> Exchange | None:
        """The exchange for a request; None if it is about the session itself."""
        try:
            meta = meta_of(request)
            if is_modern(meta):
                exchange = self._modern(request, meta)
            elif request.method in self._session:
                return None
            else:
                exchange = self._session.exchange(request.id)
            exchange.token = None if meta is None else meta.token
            if request.id in self._running:
                raise RpcError(INVALID_REQUEST, f"Request {request.id!r} is still running")
        except RpcError as error:
            error.id = request.id
            raise
        self._running[request.id] = exchange
        return exchange

    def _modern(self, request: Request, said: params.Meta | None) -> Exchange:
        meta, client = require(said)
        version = version_of(meta)
        if request.method in self._session:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        return Exchange(request.id, version, client, self._link, level=meta.level)

    def _tell(self, message: Notification | Response) -> None:
        if isinstance(message, Response):
            self._settle(message)
        elif message.method == "notifications/cancelled":
            # A notification is not answered, whatever is wrong with it.
            with suppress(RpcError):
                id = params.read(message.params, params.Cancelled).id
                if id is not None and (exchange := self._running.get(id)) is not None:
                    exchange.cancel()

    def _accepted(self, texts: list[bytes]) -> list[bytes]:
        if not self._session.takes_batches:
            raise RpcError(INVALID_REQUEST, "This protocol version has no batches")
        if not texts:
            raise RpcError(INVALID_REQUEST, "The batch is empty")
        return texts

    def _answer_batch(self, texts: list[bytes]) -> None:
        frames = [frame for text in texts if (frame := self._frame_of(text)) is not None]
        if frames:
            self._link.send(b"[%b]" % b",".join(frames))

    def _frame_of(self, text: bytes) -> bytes | None:
        try:
            message = parse(text)
            if not isinstance(message, Request):
                self._tell(message)
                return None
            if message.method == "initialize":
                raise RpcError(INVALID_REQUEST, "initialize is not for batches", id=message.id)
            exchange = self._open(message)
            if exchange is None:
                return result_frame(message.id, self._session.answer(message))
            return self._frame(message, exchange)
        except RpcError as error:
            return error_frame(error.id, error)
