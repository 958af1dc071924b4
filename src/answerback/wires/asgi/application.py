"""AsgiApp: the ASGI application. It routes a request to MCP or to REST."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...calls.failures import log_internal_error
from ...calls.handlers import Handlers
from ...errors import needs_extra
from ...mcp.signing import signer_from_environment
from ...registry import Change, HealthState, Registry
from ...reply import Reply, failure
from ..http.guard import Guard
from ..http.options import WebOptions
from ..http.routes import Routes
from .request import FAST_PATH, ClientDisconnected, HttpRequest, Receive, Scope, Send
from .worker_bus import SINGLE_WORKER, RegistryChanged, SocketBus, WorkerBus

with needs_extra("serve"):
    from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from .mcp_endpoint import McpEndpoint


class AsgiApp:
    """Serves a registry over HTTP; Starlette and FastAPI can mount it."""

    def __init__(self, registry: Registry, handlers: Handlers, options: WebOptions) -> None:
        self._registry = registry
        self._handlers = handlers
        self._bus: WorkerBus = SINGLE_WORKER
        self._max_body = options.max_body
        self._guard = Guard(options)
        self._signer = signer_from_environment()[0]
        route = registry.contract.route
        self._routes = Routes(registry, handlers.tools, wire="rest", prefixes=(route,))
        self._is_closing = False
        registry.checks["shutdown"] = lambda: HealthState(not self._is_closing)
        self._cors: ASGIApp | None = None
        if options.origins:
            self._cors = CORSMiddleware(
                self._answer,
                allow_origins=options.origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["X-Error-Code", "Mcp-Session-Id"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._answer_other(scope, receive, send)
        elif self._cors is not None:
            # The fast path would bypass the headers that the CORS middleware adds.
            scope.pop(FAST_PATH, None)
            await self._cors(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def join(self, bus: SocketBus) -> None:
        """Be one of several workers. Call this before the first request."""
        self._bus = bus
        await bus.start(self._mcp.apply)
        loop = asyncio.get_running_loop()
        sending: set[asyncio.Task[None]] = set()

        def send(change: Change) -> None:
            task = loop.create_task(bus.broadcast(RegistryChanged(change)))
            sending.add(task)
            task.add_done_callback(sending.discard)

        def forward(change: Change) -> None:
            # A change may come from any thread.
            loop.call_soon_threadsafe(send, change)

        self._registry.changes.forward = forward

    def open(self) -> None:
        """Serve, also after a shutdown."""
        self._is_closing = False
        if "_mcp" in self.__dict__:
            self._mcp.open()

    def close(self) -> None:
        """End the streams and the questions that would stay open."""
        self._is_closing = True
        # Without an MCP request there is nothing to end.
        if "_mcp" in self.__dict__:
            self._mcp.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        body: bytes | Reply[Any] = b""
        try:
            # Read before anything is refused: a client that is still sending does not read.
            if request.method not in ("GET", "HEAD"):
                body = await request.body(self._max_body)
        except ClientDisconnected:
            await request.finish_unread()
            return
        refused = self._guard.refuse(scope, request.headers)
        if request.path in ("/mcp", "/message"):
            await self._mcp.answer(request, body, refused)
        elif refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
        else:
            try:
                written = await self._routes.answer(request, body)
            except Exception:  # noqa: BLE001 -- a bug of ours ends one request, not the server
                log_internal_error(f"{request.method} {request.path}")
                written = self._routes.refuse(failure("Internal server error"), request)
            await request.respond_with(written)

    async def _answer_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the lifespan events of the server, and refuse a WebSocket."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
            return
        while (message := await receive())["type"] != "lifespan.shutdown":
            if message["type"] == "lifespan.startup":
                self.open()
                await send({"type": "lifespan.startup.complete"})
        self.close()
        await send({"type": "lifespan.shutdown.complete"})

    @cached_property
    def _mcp(self) -> McpEndpoint:
        # Imported at the first MCP request; a server of REST alone does not need it.
        from .mcp_endpoint import McpEndpoint

        return McpEndpoint(self._registry, self._handlers, self._signer, self._bus)
