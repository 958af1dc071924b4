"""The ASGI application: calls are picked out here, the rest goes through Starlette's router.

The router costs a quarter of the throughput, and a call needs nothing that it offers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import needs_extra
from ..http import RESERVED
from .body import Receive, Scope, Send
from .guard import Guard
from .options import WebOptions
from .pages import Pages
from .rest import Functions

with needs_extra("serve"):
    from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ...app import App


class Site:
    def __init__(self, app: App, options: WebOptions) -> None:
        guard = Guard(options)
        self._route = app.contract.route
        self._functions = Functions(app, guard, options)
        self._pages = Pages(app, guard).starlette()
        self._entrance: ASGIApp = self._pick
        if options.origins:
            self._entrance = CORSMiddleware(
                self._pick,
                allow_origins=options.origins,
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
                expose_headers=["X-Error-Code"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._entrance(scope, receive, send)

    async def _pick(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._function_at(scope) if scope["type"] == "http" else ""
        if name:
            await self._functions.call(name, scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    def _function_at(self, scope: Scope) -> str:
        """The function's name, or an empty string for any other path."""
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :]
        if not path.startswith(self._route):
            return ""
        name = path[len(self._route) :]
        # Only a contract without a prefix of its own shares its place with our routes.
        return "" if self._route == "/" and name.partition("/")[0] in RESERVED else name
