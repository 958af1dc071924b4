"""The ASGI application: calls are picked out here, the rest goes through Starlette's router.

The router costs a quarter of the throughput, and a call needs nothing that it offers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import needs_extra
from ...mcp.signing import sealer_from_environment
from ...registry import Change
from ..http.guard import Guard
from ..http.options import WebOptions
from ..http.pages import Pages
from ..http.refusals import RESERVED
from ..http.routes import Functions
from .request import DIRECT, Incoming, Receive, Scope, Send
from .worker_bus import ALONE, Bus, Changed, Sockets

with needs_extra("serve"):
    from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ...app import App
    from .mcp_endpoint import Endpoint


class Site:
    def __init__(self, app: App, options: WebOptions) -> None:
        self._app = app
        self._bus: Bus = ALONE
        self._options = options
        self._guard = Guard(options)
        self._sealer = sealer_from_environment()[0]
        self._route = app.contract.route
        self._functions = Functions(app, self._guard, options)
        self._pages = Pages(app, self._guard).starlette()
        self._cors: ASGIApp | None = None
        if options.origins:
            self._cors = CORSMiddleware(
                self._pick,
                allow_origins=options.origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["X-Error-Code", "Mcp-Session-Id"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._cors is None:
            await self._pick(scope, receive, send)
        else:
            # The short way would go around what it adds.
            scope.pop(DIRECT, None)
            await self._cors(scope, receive, send)

    async def join(self, bus: Sockets) -> None:
        """Be one of several workers; before the first request."""
        self._bus = bus
        await bus.start(self._mcp.hear)
        loop = asyncio.get_running_loop()
        telling: set[asyncio.Task[None]] = set()

        def tell(change: Change) -> None:
            task = loop.create_task(bus.tell_all(Changed(change)))
            telling.add(task)
            task.add_done_callback(telling.discard)

        def tell_from_any_thread(change: Change) -> None:
            loop.call_soon_threadsafe(tell, change)

        self._app.changes.spread = tell_from_any_thread

    def close(self) -> None:
        """End the streams that would never end by themselves."""
        self._mcp.close()

    def _pick(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Not a coroutine of its own: a call has few enough to go through."""
        path = _path(scope) if scope["type"] == "http" else ""
        if path in ("/mcp", "/message"):
            return self._mcp(Incoming(scope, receive, send))
        if name := self._function_at(path):
            return self._functions.call(name, Incoming(scope, receive, send))
        return self._pages(scope, receive, send)

    @cached_property
    def _mcp(self) -> Endpoint:
        from .mcp_endpoint import Endpoint

        return Endpoint(self._app, self._guard, self._options, self._sealer, self._bus)

    def _function_at(self, path: str) -> str:
        """The function's name, or an empty string for any other path."""
        if not path.startswith(self._route):
            return ""
        name = path[len(self._route) :]
        # Only a contract without a prefix of its own shares its place with our routes.
        return "" if self._route == "/" and name.partition("/")[0] in RESERVED else name


def _path(scope: Scope) -> str:
    """The path below where the application is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root + "/") else path
