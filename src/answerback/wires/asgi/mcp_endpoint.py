"""MCP's Streamable HTTP, both eras at one address: who may speak, and which era it is."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from ...mcp.engine import Engine
from ...mcp.jsonrpc import parse, parse_batch
from ...mcp.messages import (
    INVALID_REQUEST,
    Request,
    RpcError,
    error_frame,
)
from ...mcp.modern import is_modern, meta_of
from ...reply import Reply
from ...versions import LEGACY
from ..http.guard import Guard
from ..http.options import WebOptions
from ..http.refusals import refuse_media
from . import mirrored_headers as routing
from .call_watch import Watchman
from .http_error import HttpError, empty
from .message import answer_message
from .request import IN_JSON, Gone, Headers, Incoming
from .stateful import Legacy
from .stateless import Modern
from .worker_bus import Bus, Changed, Note

if TYPE_CHECKING:
    from ...app import App
    from ...mcp.signing import Sealer

_LEGACY = frozenset(name.encode() for name in LEGACY)


class Endpoint:
    """What is at `/mcp` and at `/message`."""

    def __init__(
        self, app: App, guard: Guard, options: WebOptions, sealer: Sealer, bus: Bus
    ) -> None:
        self._app = app
        self._guard = guard
        self._max_body = options.max_body
        self._engine = Engine(app, app.paths, lambda: sealer)
        watchman = Watchman()
        self._legacy = Legacy(app, self._engine, sealer, bus, watchman)
        self._modern = Modern(app, self._engine, watchman)

    async def __call__(self, incoming: Incoming) -> None:
        try:
            body = await incoming.body(self._max_body)
            self._admit(incoming, body)
            assert isinstance(body, bytes)
            if incoming.scope["path"].endswith("/message"):
                await self._message(body, incoming)
            elif incoming.method == "POST":
                await self._post(body, incoming)
            else:
                await self._stream_or_end(incoming)
        except Gone:
            await incoming.leave()
        except HttpError as refused:
            frame = error_frame(refused.error.id, refused.error)
            await incoming.respond(refused.status, (*refused.headers, *IN_JSON), frame)

    async def hear(self, note: Note) -> None:
        """What another worker tells."""
        if isinstance(note, Changed):
            self._app.changes.hear(note.change)
        else:
            await self._legacy.hear(note)

    def close(self) -> None:
        """End the streams that would never end by themselves."""
        self._legacy.close()
        self._modern.close()

    def _admit(self, incoming: Incoming, body: bytes | Reply[Any]) -> None:
        refused = self._guard.refuse(incoming.scope, incoming.headers)
        media = incoming.headers.get(b"content-type", b"")
        if refused is None and incoming.method == "POST" and media != b"application/json":
            refused = refuse_media(media.decode("latin-1"))
        if refused is None and not isinstance(body, bytes):
            refused = body
        if refused is not None and refused.error is not None:
            error = RpcError(INVALID_REQUEST, refused.error.message)
            raise HttpError(refused.error.row.status, error)

    def _stream_or_end(self, incoming: Incoming) -> Awaitable[None]:
        method = incoming.method
        modern = _says_modern(incoming.headers)
        if method == "GET" and not modern:
            return self._legacy.get(incoming)
        if method == "DELETE" and not modern:
            return self._legacy.delete(incoming)
        error = RpcError(INVALID_REQUEST, f"Method not allowed: {method}")
        raise HttpError(405, error, Allow="POST" if modern else "GET, POST, DELETE")

    async def _message(self, body: bytes, incoming: Incoming) -> None:
        if incoming.method != "POST":
            error = RpcError(INVALID_REQUEST, f"Method not allowed: {incoming.method}")
            raise HttpError(405, error, Allow="POST")
        await answer_message(self._engine, body, incoming)

    def _post(self, body: bytes, incoming: Incoming) -> Awaitable[None]:
        """What answers the message, to be awaited: a call has few steps to go through."""
        _check_accept(incoming.headers)
        modern = _says_modern(incoming.headers)
        try:
            batch = parse_batch(body)
            if batch is not None:
                if modern:
                    raise RpcError(INVALID_REQUEST, "This protocol version has no batches")
                return self._legacy.post_batch(batch, incoming)
            message = parse(body)
            if not isinstance(message, Request):
                return empty(incoming, 202) if modern else self._legacy.take(message, incoming)
            meta = meta_of(message)
        except RpcError as error:
            raise HttpError(400, error) from None
        # By its body too, so that one who forgot the header is told so.
        if modern or is_modern(meta):
            return self._modern.answer(message, meta, incoming)
        return self._legacy.answer(message, meta, incoming)


def _says_modern(headers: Headers) -> bool:
    said = headers.get(routing.VERSION)
    return said is not None and said not in _LEGACY and said.strip() not in _LEGACY


def _check_accept(headers: Headers) -> None:
    accept = headers.get(b"accept", b"*/*")
    if b"json" in accept or b"*/*" in accept:
        return
    accept = accept.lower()
    if not any(part in accept for part in (b"json", b"event-stream", b"application/*")):
        what = "Not acceptable: accept application/json and text/event-stream"
        raise HttpError(406, RpcError(INVALID_REQUEST, what))
