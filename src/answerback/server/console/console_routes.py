"""Answers the console's requests: its page, and what the page asks about the app.

The page is public, because a browser that opens it sends no token. What it does goes through REST
and MCP, as its user.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ...core.reply import Error, Reply
from ...core.versions import LATEST_STATEFUL, STATELESS
from ...dialects import HttpReply
from ...dialects.accept import prefers_html
from ...dialects.status_and_headers import JSON
from ...errors import ToolError
from ..asgi.request import ClientDisconnected, HttpRequest
from ..http.host_and_origin import is_local
from ..http.refusals import refuse_media, refuse_method
from .console_page import console_page
from .widget_frame import FRAME, widget_frame

if TYPE_CHECKING:
    from ...calls.runtime import Runtime
    from ...contract import Contract
    from ...core.json_value import JsonObject
    from ..asgi.authenticated import Authenticated
    from ..http.host_and_origin import Guard
    from ..http.routes import Routes
    from ..http.server_options import StartHelp, WebOptions

PAGES = ("/", "/docs")
ABOUT = "/console/about.json"
VIEWS = "/console/views"
TOKEN_PAGE = "/dev/token"
"""The page of `serve --dev-auth` that gives test tokens."""
HTML = "text/html; charset=utf-8"
NO_STORE = (("Cache-Control", "no-store"),)


class ConsoleRoutes:
    """Answers the requests of one app's console."""

    def __init__(
        self,
        runtime: Runtime,
        guard: Guard,
        routes: Routes,
        auth: Authenticated | None,
        options: WebOptions,
    ) -> None:
        self._runtime = runtime
        self._guard = guard
        self._routes = routes
        self._auth = auth
        self._max_body = options.max_body
        self._start = options.start
        self._mcp = options.mcp
        self._only_local = options.only_local_console

    async def answer(self, request: HttpRequest) -> bool:
        """Answer a request for the console; return False for other requests."""
        is_own_machine = is_local(request.scope, request.headers)
        if self._only_local and not is_own_machine:
            return False
        if request.path == VIEWS:
            await self._answer_views(request)
            return True
        if request.path not in (ABOUT, FRAME) and not wants_page(request):
            return False
        refused = self._guard.refuse(request.scope, request.headers)
        if refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
        elif request.path == ABOUT:
            # Users of other machines can neither run the program nor need its path.
            start = self._start if is_own_machine else None
            body = msgspec.json.encode(self._about(start))
            await request.respond_with(HttpReply(200, body, JSON, NO_STORE))
        elif request.path == FRAME:
            await request.respond_with(self._frame(request))
        else:
            await request.respond_with(page_for(request))
        return True

    def _frame(self, request: HttpRequest) -> HttpReply:
        try:
            return widget_frame(request.query)
        except ToolError as exc:
            return self._routes.refuse(Reply(error=Error.of(exc)), request)

    async def _answer_views(self, request: HttpRequest) -> None:
        """Answer with all views of a result, for users who may call tools."""
        try:
            body = await request.body(self._max_body)
        except ClientDisconnected:
            await request.finish_unread()
            return
        refused = (
            self._guard.refuse(request.scope, request.headers)
            or refuse_method(request.method, "POST")
            or refuse_media(request.content_type)
        )
        if refused is None and isinstance(body, Reply):
            refused = body
        if refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
        elif self._auth is not None and (answered := await self._auth.answer(request, body)):
            await request.respond_with(answered)
        else:
            contract = self._runtime.registry.contract
            found = await views_of(cast("bytes", body), contract)
            if isinstance(found, Reply):
                found = self._routes.refuse(found, request)
            await request.respond_with(found)

    def _about(self, start: StartHelp | None) -> JsonObject:
        registry = self._runtime.registry
        server: dict[str, Any] = {
            "name": registry.name,
            "mcp": self._mcp.lstrip("/"),
            "functions": registry.contract.route.lstrip("/"),
            "frame": FRAME.lstrip("/"),
            "dialect": registry.contract.http,
            "prefix": registry.contract.tool_prefix,
            "versions": [LATEST_STATEFUL.name, *STATELESS],
        }
        auth = self._runtime.auth
        pages = {} if auth is None else auth.pages or {}
        return {
            "name": registry.name,
            "title": registry.title,
            "version": registry.version,
            "description": registry.description,
            "auth": auth is not None,
            "tokens": TOKEN_PAGE.lstrip("/") if TOKEN_PAGE in pages else None,
            "servers": [server],
            "start": msgspec.to_builtins(start),
        }


def wants_page(request: HttpRequest) -> bool:
    """Return whether a browser asks for a page; programs get JSON as before."""
    # A prefix without a slash at its end is the page `/` too.
    is_page = request.path in PAGES or request.path == request.root
    if request.method not in ("GET", "HEAD") or not is_page:
        return False
    return prefers_html(request.accept.decode("latin-1"))


async def views_of(body: bytes, contract: Contract) -> HttpReply | Reply[Any]:
    """Return all views of the result in *body*, or the refusal of a malformed one."""
    # Imported at the first call in a console: it needs the rules and the modelled hosts.
    from .reply_views import encoded_views

    try:
        # In a thread, because a large result takes a while.
        views = await asyncio.to_thread(encoded_views, body, contract)
    except ToolError as exc:
        return Reply(error=Error.of(exc))
    return HttpReply(200, views, JSON, NO_STORE)


def page_for(request: HttpRequest) -> HttpReply:
    """Return the page at the request's path."""
    page = console_page("docs" if request.path == "/docs" else "")
    if b"gzip" not in request.headers.get(b"accept-encoding", b""):
        return HttpReply(200, page.body, HTML, page.headers)
    return HttpReply(200, page.compressed, HTML, (*page.headers, ("Content-Encoding", "gzip")))
