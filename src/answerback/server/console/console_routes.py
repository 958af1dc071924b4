"""Answers the console's requests: its page, and what the page asks about the app.

The page is public, because a browser that opens it sends no token. What it does goes through REST
and MCP, as its user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...core.versions import LATEST_STATEFUL, STATELESS
from ...dialects import HttpReply
from ...dialects.accept import prefers_html
from ...dialects.status_and_headers import JSON
from ..asgi.request import HttpRequest, Receive, Scope, Send
from .console_page import console_page

if TYPE_CHECKING:
    from ...calls.runtime import Runtime
    from ...core.json_value import JsonObject
    from ..http.host_and_origin import Guard
    from ..http.routes import Routes

PAGES = ("/", "/docs")
ABOUT = "/console/about.json"
HTML = "text/html; charset=utf-8"


class ConsoleRoutes:
    """Answers the requests of one app's console."""

    def __init__(self, runtime: Runtime, guard: Guard, routes: Routes) -> None:
        self._runtime = runtime
        self._guard = guard
        self._routes = routes

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request for the console; return False for other requests."""
        request = HttpRequest(scope, receive, send)
        if request.path != ABOUT and not wants_page(request):
            return False
        refused = self._guard.refuse(scope, request.headers)
        if refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
        elif request.path == ABOUT:
            body = msgspec.json.encode(self._about())
            await request.respond_with(HttpReply(200, body, JSON, (("Cache-Control", "no-store"),)))
        else:
            await request.respond_with(page_for(request))
        return True

    def _about(self) -> JsonObject:
        registry = self._runtime.registry
        server: dict[str, Any] = {
            "name": registry.name,
            "mcp": "mcp",
            "functions": registry.contract.route.lstrip("/"),
            "versions": [LATEST_STATEFUL.name, *STATELESS],
        }
        return {
            "name": registry.name,
            "title": registry.title,
            "version": registry.version,
            "description": registry.description,
            "auth": self._runtime.auth is not None,
            "servers": [server],
        }


def wants_page(request: HttpRequest) -> bool:
    """Return whether a browser asks for a page; programs get JSON as before."""
    # A prefix without a slash at its end is the page `/` too.
    is_page = request.path in PAGES or request.path == request.root
    if request.method not in ("GET", "HEAD") or not is_page:
        return False
    return prefers_html(request.accept.decode("latin-1"))


def page_for(request: HttpRequest) -> HttpReply:
    """Return the page at the request's path."""
    page = console_page("docs" if request.path == "/docs" else "")
    return HttpReply(200, page.body, HTML, page.headers)
