"""MCP's Streamable HTTP at one path, both eras, and `POST /message` for one plain request."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from ...calls.runtime import Runtime
from ...core.reply import Reply
from ...core.signing import Signer
from ...core.versions import LATEST_STATEFUL, STATEFUL
from ...errors import Unavailable
from ...protocol.engine import Engine
from ...protocol.jsonrpc import (
    INVALID_REQUEST,
    Frame,
    Request,
    RpcError,
    error_frame,
    is_batch,
    is_stateless,
    meta_of,
    parse,
    parse_batch,
    result_frame,
)
from ...protocol.mcp_peer import McpPeer
from ...protocol.session import ClientCapabilities
from ...registry.composition import apply_switch
from ..http.routes import refuse_media
from .application import HttpError, unavailable
from .in_flight import InFlight
from .request import JSON_HEADERS, HttpRequest, challenge_headers
from .sessions import VERSION_HEADER, Sessions
from .stateful import Stateful
from .stateless import Stateless
from .worker_sockets import RegistryChanged, RegistrySwitched, WorkerBus, WorkerMessage

_STATEFUL_VERSIONS = frozenset(name.encode() for name in STATEFUL)


class McpEndpoint:
    """Checks a request, finds its era, and hands it on."""

    def __init__(self, runtime: Runtime, signer: Signer, bus: WorkerBus, *, sessions: bool) -> None:
        self._registry = registry = runtime.registry
        self._engine = Engine(runtime, lambda: signer)
        in_flight = InFlight()
        keeper = Sessions(signer, bus.number, is_bound=runtime.auth is not None, are_kept=sessions)
        self._has_sessions = sessions
        self._stateful = Stateful(registry, self._engine, keeper, bus, in_flight)
        self._stateless = Stateless(registry, self._engine, in_flight)

    async def answer(
        self, http: HttpRequest, body: bytes | Reply[Any], refused: Reply[Any] | None
    ) -> None:
        """Respond to a request; *refused* is the guard's refusal."""
        try:
            if refused is None and http.method == "POST":
                if http.content_type != b"application/json":
                    refused = refuse_media(http.content_type)
                if isinstance(body, bytes) and refused is None:
                    if http.path == "/message":
                        await self._message(body, http)
                    else:
                        await self._post(body, http)
                    return
            reason = refused or body
            if isinstance(reason, Reply) and reason.error is not None:
                status = reason.error.row.status
                raise HttpError(status, RpcError(INVALID_REQUEST, reason.error.message))
            await self._get_or_delete(http)
        except Unavailable as exc:
            error = unavailable(exc)
            headers = ((b"retry-after", b"%d" % (exc.retry_after or 1)), *JSON_HEADERS)
            await http.respond(503, headers, error_frame(None, error))
        except HttpError as error:
            frame = error_frame(error.error.id, error.error)
            await http.respond(error.status, (*error.headers, *JSON_HEADERS), frame)

    async def apply(self, message: WorkerMessage) -> None:
        """Apply another worker's message."""
        if isinstance(message, RegistryChanged):
            self._registry.changes.deliver(message.change)
        elif isinstance(message, RegistrySwitched):
            apply_switch(self._registry, message.switch)
        else:
            await self._stateful.sync.apply(message)

    def open(self) -> None:
        """Serve, even after a shutdown."""
        self._stateful.open()

    def close(self) -> None:
        """End open streams and questions."""
        self._stateful.close()
        self._stateless.close()

    def _post(self, body: bytes, http: HttpRequest) -> Coroutine[Any, Any, None]:
        """Return the coroutine that answers the message or the batch; raises HttpError."""
        http.text = body
        if b"json" not in http.accept:
            _check_accept(http.accept)
        stateless = _names_stateless_version(http)
        try:
            if is_batch(body):
                texts = parse_batch(body)
                if stateless:
                    raise RpcError(INVALID_REQUEST, "This protocol version has no batches")
                return self._stateful.post_batch(texts, http)
            message = parse(body)
            if isinstance(message, Request):
                meta = meta_of(message)
                # The body counts too: a client that forgot the header gets an error that names it.
                if stateless or is_stateless(meta):
                    return self._stateless.post(message, meta, http)
                return self._stateful.post(message, meta, http)
        except RpcError as error:
            raise HttpError(400, error) from None
        return http.respond(202, (), b"") if stateless else self._stateful.accept(message, http)

    async def _get_or_delete(self, http: HttpRequest) -> None:
        with_sessions = (
            self._has_sessions and http.path != "/message" and not _names_stateless_version(http)
        )
        if with_sessions:
            if http.method == "GET":
                return await self._stateful.get(http)
            if http.method == "DELETE":
                return await self._stateful.delete(http)
        allowed = "GET, POST, DELETE" if with_sessions else "POST"
        error = RpcError(INVALID_REQUEST, f"Method not allowed: {http.method}")
        raise HttpError(405, error, Allow=allowed)

    async def _message(self, body: bytes, http: HttpRequest) -> None:
        """Answer one JSON-RPC request in plain JSON, without a handshake or a session."""
        http.text = body
        try:
            request = parse(body)
        except RpcError as error:
            raise HttpError(400, error) from None
        if not isinstance(request, Request):
            await http.respond(202, (), b"")
            return
        peer = McpPeer()
        peer.id = request.id
        peer.version = LATEST_STATEFUL
        peer.client = ClientCapabilities()
        peer.caller = http.caller
        peer.http = http
        peer.can_refuse_by_status = True
        frame = await self._message_frame(request, peer)
        status, headers = 200, JSON_HEADERS
        if peer.error is not None and peer.error.challenge is not None:
            status, challenge = peer.error.challenge
            headers = challenge_headers(challenge)
        await http.respond(status, headers, frame)

    async def _message_frame(self, request: Request, peer: McpPeer) -> Frame:
        try:
            if request.method == "ping":
                return result_frame(request.id, b"{}")
            if request.method == "initialize":
                has_user = peer.describe_request("mcp").user is not None
                server_info = self._engine.server_info
                _, result = server_info.initialize(request.params, has_user=has_user)
                return result_frame(request.id, result)
            meta_of(request)
        except RpcError as error:
            return error_frame(request.id, error)
        return await self._engine.respond(request, peer)


def _names_stateless_version(http: HttpRequest) -> bool:
    version = http.headers.get(VERSION_HEADER)
    if version is None or version in _STATEFUL_VERSIONS:
        return False
    return version.strip() not in _STATEFUL_VERSIONS


def _check_accept(accept: bytes) -> None:
    if not accept or b"*/*" in accept:
        return
    accept = accept.lower()
    if not any(part in accept for part in (b"json", b"event-stream", b"application/*")):
        reason = "Not acceptable: accept application/json and text/event-stream"
        raise HttpError(406, RpcError(INVALID_REQUEST, reason))
