"""MCP's Streamable HTTP, both eras at one address. Turns requests into messages, no more."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...mcp import headers as routing
from ...mcp import params
from ...mcp.engine import Engine
from ...mcp.exchange import Exchange
from ...mcp.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Message,
    Notification,
    Request,
    Response,
    RpcError,
    error_frame,
    parse,
    parse_batch,
    result_frame,
)
from ...mcp.modern import is_modern, meta_of, require, version_of
from ...mcp.sessions import Sessions, State
from ...mcp.tickets import Ticket
from ...reply import Reply
from ...versions import ASSUMED_LEGACY, LEGACY, Version
from ..http import refuse_media
from .body import Gone, Headers, Receive, Scope, Send, read_body
from .guard import Guard
from .options import WebOptions
from .stream import Stream

if TYPE_CHECKING:
    from ...app import App
    from ...seal import Sealer

SESSION = b"mcp-session-id"
_DONE = b"{}"
_MODERN_STATUS = {
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    INVALID_REQUEST: 400,
    PARSE_ERROR: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}


class HttpError(Exception):
    """An answer to a request that is no message, or may not be one here."""

    def __init__(self, status: int, error: RpcError, **headers: str) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]


class Endpoint:
    """What is at `/mcp`."""

    def __init__(self, app: App, guard: Guard, options: WebOptions, sealer: Sealer) -> None:
        self._app = app
        self._guard = guard
        self._max_body = options.max_body
        self._sealer = sealer
        self._engine = Engine(app, app.paths, lambda: sealer)
        self._sessions = Sessions()
        # Bounded, so that a session which is never used again costs nothing for long.
        self._open_ticket = lru_cache(1024)(lambda id: Ticket.open(id, sealer))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = dict(scope["headers"])
        try:
            body = await read_body(receive, headers, self._max_body)
            self._admit(scope, headers, body)
            match scope["method"]:
                case "POST":
                    assert isinstance(body, bytes)
                    await self._post(body, scope, headers, send)
                case "DELETE" if not self._says_modern(headers):
                    self._end(headers)
                    await _empty(send, 204)
                case _:
                    error = RpcError(INVALID_REQUEST, f"Method not allowed: {scope['method']}")
                    raise HttpError(405, error, Allow="POST, DELETE")
        except Gone:
            return
        except HttpError as refused:
            stream = Stream(send, refused.headers)
            await stream.finish(error_frame(refused.error.id, refused.error), refused.status)

    def _admit(self, scope: Scope, headers: Headers, body: bytes | Reply[Any]) -> None:
        refused = self._guard.refuse(scope, headers)
        if refused is None and scope["method"] == "POST":
            refused = refuse_media(headers.get(b"content-type", b"").decode("latin-1"))
        if refused is None and isinstance(body, Reply):
            refused = body
        if refused is not None and refused.error is not None:
            error = RpcError(INVALID_REQUEST, refused.error.message)
            raise HttpError(refused.error.row.status, error)

    async def _post(self, body: bytes, scope: Scope, headers: Headers, send: Send) -> None:
        _check_accept(headers)
        try:
            batch = parse_batch(body)
            if batch is not None:
                await self._post_batch(batch, headers, send)
                return
            message = parse(body)
        except RpcError as error:
            raise HttpError(400, error) from None
        if self._is_modern(message, headers):
            await self._post_modern(message, scope, headers, send)
        else:
            await self._post_legacy(message, headers, send)

    def _says_modern(self, headers: Headers) -> bool:
        said = headers.get(routing.VERSION, b"").decode("latin-1").strip()
        return bool(said) and said not in LEGACY

    def _is_modern(self, message: Message, headers: Headers) -> bool:
        """By its header; and by its body, so that one who forgot the header is told so."""
        if self._says_modern(headers):
            return True
        if not isinstance(message, Request):
            return False
        try:
            return is_modern(meta_of(message.params))
        except RpcError:
            return False

    async def _post_modern(
        self, message: Message, scope: Scope, headers: Headers, send: Send
    ) -> None:
        if not isinstance(message, Request):
            await _empty(send, 202)
            return
        stream = Stream(send, [])
        try:
            exchange = self._open_modern(message, scope, headers, stream)
            if message.method == "server/discover":
                frame = result_frame(message.id, self._engine.discover(exchange.version))
            else:
                result = await self._engine.answer(message, exchange)
                frame = result_frame(message.id, result)
        except RpcError as error:
            status = _MODERN_STATUS.get(error.code, 200)
            await stream.finish(error_frame(message.id, error), status)
            return
        await stream.finish(frame, 200)

    def _open_modern(
        self, request: Request, scope: Scope, headers: Headers, stream: Stream
    ) -> Exchange:
        if len(headers) != len(scope["headers"]):
            routing.refuse_duplicates(scope["headers"])
        meta, client = require(meta_of(request.params))
        routing.check_routing(request, str(meta.version), headers)
        exchange = Exchange(request.id, version_of(meta), client, stream, level=meta.level)
        exchange.token = meta.token
        if request.method == "tools/call":
            asked = params.read(request.params, params.CallTool)
            tool = self._app.tools.get(asked.name.removeprefix(self._app.contract.tool_prefix))
            if tool is not None:
                routing.check_params(tool, bytes(asked.arguments), headers)
        return exchange

    async def _post_legacy(self, message: Message, headers: Headers, send: Send) -> None:
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(message, send)
            return
        ticket, version = self._session(headers)
        if not isinstance(message, Request):
            self._tell(message, ticket)
            await _empty(send, 202)
            return
        stream = Stream(send, [])
        frame = await self._legacy_frame(message, ticket, version, stream)
        if frame is not None:
            await stream.finish(frame, 200)

    async def _initialize(self, request: Request, send: Send) -> None:
        try:
            session, result = self._engine.initialize(request.params)
        except RpcError as error:
            await Stream(send, []).finish(error_frame(request.id, error), 200)
            return
        ticket = Ticket.issue(session.version, session.client, home=0)
        stream = Stream(send, [(SESSION, ticket.seal(self._sealer).encode())])
        await stream.finish(result_frame(request.id, result), 200)

    def _session(self, headers: Headers) -> tuple[Ticket | None, Version]:
        """Who it is; without a session id, whoever it is, at the version of its header."""
        id = headers.get(SESSION)
        if id is None:
            said = headers.get(routing.VERSION, b"").decode("latin-1").strip()
            return None, LEGACY.get(said, ASSUMED_LEGACY)
        ticket = self._open_ticket(id.decode("latin-1"))
        state = None if ticket is None else self._sessions.get(ticket)
        if ticket is None or (state is not None and state.ended):
            raise HttpError(404, RpcError(INVALID_REQUEST, "Session not found; initialize anew"))
        return ticket, ticket.version

    async def _legacy_frame(
        self, request: Request, ticket: Ticket | None, version: Version, stream: Stream
    ) -> bytes | None:
        try:
            if request.method in _OF_SESSION:
                return result_frame(request.id, self._within_session(request, ticket))
            meta = meta_of(request.params)
        except RpcError as error:
            return error_frame(request.id, error)
        exchange = self._open_legacy(request, ticket, version, stream)
        exchange.token = None if meta is None else meta.token
        return await self._engine.respond(request, exchange)

    def _open_legacy(
        self, request: Request, ticket: Ticket | None, version: Version, stream: Stream
    ) -> Exchange:
        client = params_client(ticket)
        state = None if ticket is None else self._sessions.get(ticket)
        level = None if state is None else state.level
        return Exchange(request.id, version, client, stream, level=level or "info")

    def _within_session(self, request: Request, ticket: Ticket | None) -> bytes:
        match request.method:
            case "logging/setLevel":
                level = params.read(request.params, params.SetLevel).level
                self._keep(ticket).level = level
            case "resources/subscribe":
                uri = params.read(request.params, params.ReadResource).uri
                self._keep(ticket).subscriptions.add(uri)
            case "resources/unsubscribe":
                uri = params.read(request.params, params.ReadResource).uri
                self._keep(ticket).subscriptions.discard(uri)
        return _DONE

    def _keep(self, ticket: Ticket | None) -> State:
        return State() if ticket is None else self._sessions.keep(ticket)

    def _tell(self, message: Notification | Response, ticket: Ticket | None) -> None:
        if isinstance(message, Response) or message.method != "notifications/cancelled":
            return
        id = params.read(message.params, params.Cancelled).id
        state = None if ticket is None else self._sessions.get(ticket)
        if state is not None and id is not None and id in state.running:
            state.running[id].cancel()

    def _end(self, headers: Headers) -> None:
        ticket, _ = self._session(headers)
        if ticket is None:
            raise HttpError(400, RpcError(INVALID_REQUEST, "Missing Mcp-Session-Id"))
        self._sessions.keep(ticket).ended = True

    async def _post_batch(self, texts: list[bytes], headers: Headers, send: Send) -> None:
        _, version = (None, None) if self._says_modern(headers) else self._session(headers)
        if version is None or not version.batches:
            raise HttpError(400, RpcError(INVALID_REQUEST, "This protocol version has no batches"))
        raise HttpError(400, RpcError(INVALID_REQUEST, "not yet"))


_OF_SESSION = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)


def _check_accept(headers: Headers) -> None:
    accept = headers.get(b"accept", b"*/*")
    if not any(kind in accept for kind in (b"json", b"event-stream", b"*/*", b"application/*")):
        error = RpcError(
            INVALID_REQUEST, "Not acceptable: accept application/json and text/event-stream"
        )
        raise HttpError(406, error)


async def _empty(send: Send, status: int) -> None:
    headers = [(b"content-length", b"0")] if status != 204 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def params_client(ticket: Ticket | None) -> Any:
    from ...mcp.session import Client

    return Client() if ticket is None else ticket.client
