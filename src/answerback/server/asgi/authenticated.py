"""Authentication over ASGI: the user goes into the scope, a refusal is sent."""

from __future__ import annotations

from typing import Any

from ...core.authentication import Credentials
from ...core.reply import Reply
from ...dialects import HttpReply
from ...dialects.status_and_headers import JSON
from ...protocol.jsonrpc import INVALID_REQUEST, RpcError, error_frame
from ..http.authentication_step import AuthenticationStep, RefusedRequest
from ..http.routes import Routes
from ..http.server_options import host_name
from .request import HttpRequest, Receive, Scope, Send


class Authenticated:
    """Authenticates the requests of an AsgiApp."""

    def __init__(
        self, step: AuthenticationStep, routes: Routes, mcp_paths: tuple[str, ...]
    ) -> None:
        self._step = step
        self._routes = routes
        self._mcp_paths = mcp_paths

    async def answer_page(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request for the metadata, which is public; return False for other requests."""
        if ".well-known" not in scope["path"]:
            return False
        request = HttpRequest(scope, receive, send)
        page = self._step.page(request.method, request.path)
        if page is not None:
            await request.respond_with(page)
        return page is not None

    async def answer(self, request: HttpRequest, body: bytes | Reply[Any]) -> HttpReply | None:
        """Return the response to a request that is refused or needs no user; None lets it proceed.

        `scope["user"]` is the user then, or None for an anonymous request.
        """
        if self._step.loopback_only:
            named = _names(request) if self._step.has_post(request.path) else []
            refused = self._step.refuse_others(*_addresses(request), *named)
            if refused is not None:
                return self._routes.refuse(refused, request)
        if request.method == "POST" and isinstance(body, bytes):
            answered = self._step.answer_post(request.path, body)
            if isinstance(answered, Reply):
                return self._routes.refuse(answered, request)
            if answered is not None:
                return HttpReply(200, answered, JSON, (("Cache-Control", "no-store"),))
        found = await self._step.identify(
            Credentials(request.method, request.path, request.query, request.scope["headers"])
        )
        if isinstance(found, RefusedRequest):
            error = found.reply.error
            if request.path not in self._mcp_paths or error is None:
                return found.added_to(self._routes.refuse(found.reply, request))
            sent = RpcError(INVALID_REQUEST, error.message, {"code": error.code})
            return found.added_to(HttpReply(error.row.status, error_frame(None, sent), JSON))
        request.scope["user"] = found
        return None


def _addresses(request: HttpRequest) -> list[str]:
    """Return the addresses of both ends of the connection, and of clients behind a proxy."""
    ends = [request.scope.get(name) for name in ("server", "client")]
    named = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
    headers = request.headers
    behind = [headers[name].decode("latin-1") for name in named if name in headers]
    return [end[0] if end else "" for end in ends] + behind


def _names(request: HttpRequest) -> list[str]:
    """Return the hosts that a request names; a proxy without a name counts as an empty one.

    Another host's page may be allowed to call tools, but must not get a test token.
    """
    headers = request.headers
    names = [
        headers[name].decode("latin-1").lower().rpartition("://")[2]
        for name in (b"host", b"origin", b"x-forwarded-host")
        if name in headers
    ]
    return [*map(host_name, names), *([""] if b"via" in headers else [])]
