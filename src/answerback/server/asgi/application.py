"""AsgiApp: the ASGI application, which routes each request to MCP or REST.

A request passes the layers that the server has, and then the routes, in this order:

    BehindProxy       applies a trusted proxy's headers
    MetadataPages     /.well-known/…, for every origin and without a user
    AuthorPages       the author's own pages; they authenticate users themselves
    Cors              answers preflights, and adds headers to responses
    AsgiApp._answer   reads the body, and refuses foreign hosts and origins
    ConsoleRoutes     /, /docs and /console/…; only /console/views needs a user
    Authenticated     identifies the user, and serves the pages that issue tokens
    McpEndpoint       /mcp and /message
    Routes            /functions/NAME with …/tasks/… and …/pages/…, /functions, /openapi.json,
                      /healthz and /readyz, which need no user
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any

from ...calls.failures import error_for, log_internal_error
from ...calls.runtime import Runtime, runtime_on_loop
from ...contract import MASKED
from ...core.authentication import Credentials
from ...core.log import logger
from ...core.reply import Reply, failure
from ...core.signing import signer_from_environment
from ...dialects import HttpReply
from ...dialects.status_and_headers import JSON
from ...errors import ToolError, Unavailable, needs_extra
from ...protocol.jsonrpc import INVALID_REQUEST, RpcError, error_frame
from ...registry.declarations import HealthState, Registry
from ..http.authentication_step import (
    AuthenticationStep,
    RefusedRequest,
    authentication_step,
)
from ..http.host_and_origin import FORWARDED_HOST, Guard, TrustedProxies
from ..http.routes import CONSOLE_PATHS, CONSOLE_VIEWS, PUBLIC, Routes, refuse_encoding, too_large
from ..http.server_options import BadOption, Network, WebOptions, host_name, networks
from ..shared_state import state_of, use_state
from .in_flight import DisconnectWatch
from .request import (
    MAX_BODY_HINT,
    ClientDisconnected,
    HttpRequest,
    Message,
    Receive,
    Scope,
    Send,
    joined_headers,
)
from .worker_sockets import SINGLE_WORKER, WorkerBus, WorkerMessage

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ...registry.lifespan import LifespanFailed
    from ..console.console_page import ConsoleRoutes
    from .mcp_endpoint import McpEndpoint

with needs_extra("serve"):
    from starlette.middleware.cors import CORSMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.routing import Match, Route


_SHOWN_HEADERS = (
    *("X-Error-Code", "X-Error-Hint", "X-Error-Url", "Location", "Preference-Applied"),
    *("Retry-After", "Mcp-Session-Id", "WWW-Authenticate"),
)


class BehindProxy:
    """Passes a request on as a trusted proxy's client sent it.

    `server` remains this server's real address, so that the guard recognises loopback.
    """

    def __init__(self, answer: ASGIApp, trusted: tuple[Network, ...]) -> None:
        self._answer = answer
        self._proxies = TrustedProxies(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if client is not None and self._proxies.trusts(client[0]):
            forwarded = self._proxies.read(joined_headers(scope))
            scope = {**scope}
            if forwarded.client is not None:
                scope["client"] = (forwarded.client, 0)
            if forwarded.scheme is not None:
                scope["scheme"] = forwarded.scheme
            if forwarded.host is not None:
                scope[FORWARDED_HOST] = forwarded.host
            if forwarded.prefix and forwarded.prefix != scope.get("root_path"):
                # In ASGI, `path` includes the prefix, which the proxy has removed.
                scope["root_path"] = forwarded.prefix + scope.get("root_path", "")
                scope["path"] = forwarded.prefix + scope["path"]
        await self._answer(scope, receive, send)


class MetadataPages:
    """Serves the public metadata of the app's `auth=`."""

    def __init__(self, answer: ASGIApp, step: AuthenticationStep) -> None:
        self._answer = answer
        self._step = step

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if ".well-known" in scope["path"]:
            request = HttpRequest(scope, receive, send)
            page = self._step.page(request.method, request.path)
            if page is not None:
                await request.respond_with(page)
                return
        await self._answer(scope, receive, send)


class Cors:
    """Adds CORS headers to the responses from *answer*."""

    def __init__(
        self, answer: ASGIApp, origins: Sequence[str], guard: Guard, routes: Routes
    ) -> None:
        self._guard = guard
        self._routes = routes
        self._answer = CORSMiddleware(
            answer,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=_SHOWN_HEADERS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "OPTIONS":
            await self._answer(scope, receive, send)
            return
        # A refused OPTIONS request gets JSON, like every other refusal; Starlette sends text.
        request = HttpRequest(scope, receive, send)
        refused = self._guard.refuse(scope, request.headers)
        sent: list[Message] = []

        async def collect(message: Message) -> None:
            sent.append(message)

        if refused is None:
            await self._answer(scope, receive, collect)
            is_preflight = b"access-control-request-method" in request.headers
            if sent[0]["status"] < 400 or not is_preflight:
                for message in sent:
                    await send(message)
                return
            reason = b"".join(message.get("body", b"") for message in sent).decode()
            refused = failure(reason, code="FOREIGN_ORIGIN")
        await request.respond_with(self._routes.refuse(refused, request))


class _TooLarge(Exception):
    """The request body is larger than the server allows."""


class AuthorPages:
    """Serves an app's own pages and those of the apps it includes; *answer* serves the rest."""

    def __init__(
        self, answer: ASGIApp, pages: list[Route], guard: Guard, routes: Routes, max_body: int
    ) -> None:
        self._answer = answer
        self._pages = pages
        self._guard = guard
        self._routes = routes
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = None
        for page in self._pages:
            match, child = page.matches(scope)
            if match is Match.FULL or (match is Match.PARTIAL and found is None):
                found = page, child
            if match is Match.FULL:
                break
        if found is None:
            await self._answer(scope, receive, send)
            return
        request = HttpRequest(scope, receive, send)
        refused = self._guard.refuse(scope, request.headers)
        if refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
            return
        page, child = found
        await self._run(page, {**scope, **child}, request)

    async def _run(self, page: Route, scope: Scope, request: HttpRequest) -> None:
        has_begun = False
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await request.receive()
            size += len(message.get("body", b""))
            if size > self._max_body:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await request.send(message)

        try:
            await page.handle(scope, limited, watched)
        except _TooLarge:
            if not has_begun:
                refused = too_large(self._max_body, MAX_BODY_HINT)
                await request.respond_with(self._routes.refuse(refused, request))
        except ClientDisconnect:
            return  # The page was reading the body; there is no client left to answer.
        except Exception as exc:
            if isinstance(exc, ToolError):
                reply: Reply[Any] = Reply(error=error_for(exc, scope["path"], MASKED, noun="page"))
            else:  # Its message must not reach the client.
                log_internal_error(f"{scope['method']} {scope['path']}")
                reply = failure("Internal server error")
            if has_begun:
                raise
            await request.respond_with(self._routes.refuse(reply, request))


_AFTER_FAILURE = 1.0
"""Seconds until the next attempt to join the other hosts."""
_NOT_AUTHENTICATED = (
    "the app %r is mounted at %s, and nothing authenticates its callers: FastAPI dependencies do "
    "not apply to a mounted application. Give it auth=, or mount app.asgi(auth=False) if anyone "
    "may call it"
)
_SEVERAL_WORKERS = "this process seems to be one of several workers. "
_NO_SECRET = (
    "ANSWERBACK_SECRET is not set: a worker does not recognise the other workers' MCP sessions, or "
    "the questions that they asked. Set it to the same value for all of them. "
)
_NOT_SHARED = (
    "The workers do not share changes to an MCP session: the answers to questions, "
    "cancellations, log levels, subscriptions and the end of a session need sticky sessions. "
    "Clients that use 2026-07-28 and `serve --workers` do not need them"
)
_ONLY_HEALTH = failure("This process runs tasks and accepts no calls", code="ROUTE_NOT_FOUND")


class AsgiApp:
    """Serves a registry over HTTP; Starlette and FastAPI can mount it."""

    def __init__(self, runtime: Runtime, options: WebOptions) -> None:
        self.runtime = runtime
        self._registry = registry = runtime.registry
        self._bus: WorkerBus = SINGLE_WORKER
        self._options = options
        self._max_body = options.max_body
        self._guard = Guard(options)
        self._signer, self.key_is_temporary = signer_from_environment()
        route = registry.contract.route
        prefixes = (route,) if options.rest else ()
        self._routes = Routes(
            runtime, wire="rest", prefixes=prefixes, has_tasks=True, mcp=options.mcp
        )
        self._mcp_paths = (options.mcp, "/message") if options.rest else (options.mcp,)
        self._auth: Authenticated | None = None
        if runtime.auth is not None or registry.composition is not None:
            step = authentication_step(runtime)
            if step is not None:
                self._auth = Authenticated(step, self._routes, self._mcp_paths)
        self.under_other_server = True
        """Whether another server is running this application; our own server sets it to False."""
        self._is_new = True
        self._only_health = options.only_health
        self._has_console = options.console and not options.only_health
        self._has_sessions = options.sessions and registry.sessions
        self._is_closing = False
        self.is_draining = False
        """Whether load balancers are told to stop sending calls; the server is still serving."""
        self._must_join = runtime.state is not None
        """Whether this process still has to join the other hosts."""
        self._joining = asyncio.Lock()
        self._unlink: Callable[[], None] | None = None
        runtime.checks["shutdown"] = lambda: HealthState(not (self.is_draining or self._is_closing))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._answer_other(scope, receive, send)
        elif self.under_other_server:
            if self._is_new:
                self._is_new = False
                # Other servers do none of this for the application, so do it on the first request.
                if self._options.signals:
                    _call_before_shutdown(self._shut_down)
                is_guarded = self._auth is not None or self._registry.requires or "user" in scope
                if scope.get("root_path") and self._options.auth and not is_guarded:
                    logger().info(_NOT_AUTHENTICATED, self._registry.name, scope["root_path"])
            try:
                # A server or a mounting framework may not send lifespan events.
                if self._must_join and not await self._join_or_refuse(scope, receive, send):
                    return
                await self._answer_http(scope, receive, send)
            finally:
                if self._is_closing:
                    self.runtime.write_records()
        else:
            await self._answer_http(scope, receive, send)

    async def _join_or_refuse(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Join the other hosts; if that fails, refuse the request and return False."""
        try:
            await self._join_hosts()
        except Unavailable as exc:
            request = HttpRequest(scope, receive, send)
            details = {"retry_after": exc.retry_after}
            refused = failure(exc.message, code=exc.code, details=details, retryable=True)
            await request.respond_with(self._routes.refuse(refused, request))
        return not self._must_join

    @cached_property
    def _answer_http(self) -> ASGIApp:
        # Built at the first request: an author may register pages after creating the application.
        pages = [
            Route(each.path, each.fn, methods=list(each.methods))
            for app in self._registry.apps()
            for each in app.routes
        ]
        options, guard, routes = self._options, self._guard, self._routes
        answer: ASGIApp = self._answer
        # Each layer is outside the ones before it.
        if options.origins:
            answer = Cors(answer, options.origins, guard, routes)
        if pages:
            answer = AuthorPages(answer, pages, guard, routes, options.max_body)
        if self._auth is not None:
            answer = MetadataPages(answer, self._auth.step)
        if options.trusted_proxies:
            answer = BehindProxy(answer, networks(options.trusted_proxies))
        return answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive, send)
        body: bytes | Reply[Any] = b""
        try:
            # Read the body before refusing anything: a client that is still sending is not reading.
            if request.method not in ("GET", "HEAD"):
                body = await request.body(self._max_body)
        except ClientDisconnected:
            await request.end_after_disconnect()
            return
        if b"content-encoding" in request.headers:
            body = refuse_encoding(request.headers[b"content-encoding"]) or body
        refused = self._guard.refuse(scope, request.headers)
        if refused is not None or self._only_health:
            if request.path not in PUBLIC:
                refused = _ONLY_HEALTH if self._only_health else refused
            elif self._guard.is_probe(scope, request.headers):
                refused = None
        is_console = (
            self._has_console
            # The console has only a few paths, so this check is cheap for other requests.
            and (request.path in CONSOLE_PATHS or request.path == request.root)
            and self._console.serves(request)
        )
        needs_user = not is_console or request.path == CONSOLE_VIEWS
        if self._auth is not None and refused is None and needs_user:
            answered = await self._auth.answer(request, body)
            if answered is not None:
                await request.respond_with(answered)
                return
        # With the path "/", a framework may leave out the slash after the mount point.
        is_mcp = request.path in self._mcp_paths or (
            self._options.mcp == "/" and request.path == request.root
        )
        if is_mcp and not is_console and not self._only_health:
            await self._mcp.answer(request, body, refused)
        elif refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
        elif is_console:
            await request.respond_with(await self._console.answer(request, body))
        else:
            await request.respond_with(await self._answer_rest(request, body))

    async def _answer_rest(self, request: HttpRequest, body: bytes | Reply[Any]) -> HttpReply:
        watch = None
        if request.is_disconnected is None and request.method == "POST":
            watch = DisconnectWatch(request.receive)
            request.is_disconnected = watch.is_disconnected
        try:
            return await self._routes.answer(request, body)
        except Exception:  # noqa: BLE001 -- our bug must fail one request, not the server
            log_internal_error(f"{request.method} {request.path}")
            return self._routes.refuse(failure("Internal server error"), request)
        finally:
            if watch is not None:
                watch.stop()

    async def _answer_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the server's lifespan events, and refuse WebSockets."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
            return
        while (message := await receive())["type"] != "lifespan.shutdown":
            if message["type"] == "lifespan.startup":
                self.open()
                if (error := await self.start()) is not None:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
        self._shut_down()
        if (error := await self.stop()) is not None:
            await send({"type": "lifespan.shutdown.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> LifespanFailed | None:
        """Join the other hosts and start the app's lifespan; log and return any failure."""
        while self._must_join:
            try:
                await self._join_hosts()
            except Unavailable:
                await asyncio.sleep(_AFTER_FAILURE)
        if self._registry.lifespan is not None:
            failure = await self._registry.lifespan.try_to_start(self)
            if failure is not None:
                return failure
        if self.runtime.task_store is not None:
            from ...tasks.service import task_service

            # Tasks from an earlier run may be waiting.
            task_service(self.runtime)
        return None

    async def stop(self) -> LifespanFailed | None:
        """End the app's tasks and lifespan; log and return any failure."""
        self.runtime.is_stopped = True
        if self.runtime.tasks is not None:
            await self.runtime.tasks.stop()
        error = None
        if self._registry.lifespan is not None:
            error = await self._registry.lifespan.try_to_stop(self)
        if self.runtime.state is not None:
            if self._unlink is not None:
                self._unlink()
            await self._bus.close()
            # A later start joins again, under a new number.
            self._must_join = True
            self.runtime.state.close()
        return error

    def open(self) -> None:
        """Accept requests, even after an earlier shutdown."""
        self._is_closing = self.runtime.is_stopped = False
        if "_mcp" in self.__dict__:
            self._mcp.open()

    def close(self) -> None:
        """End open streams and questions."""
        self._is_closing = True
        # If no MCP request has arrived, there is nothing to end.
        if "_mcp" in self.__dict__:
            self._mcp.close()

    def _shut_down(self) -> None:
        """Prepare for a shutdown that the other server may not announce."""
        self.close()
        self.runtime.write_records()

    async def _join_hosts(self) -> None:
        """Start the shared state and join the other processes, once; raises Unavailable."""
        assert self.runtime.state is not None
        async with self._joining:
            if self._must_join:
                from .database_bus import DatabaseBus

                self.runtime.state.start()
                # Any existing endpoint belongs to the bus of an earlier start or failed attempt.
                self.__dict__.pop("_mcp", None)
                state, off_loop = self.runtime.state, self.runtime.off_loop
                await self.join(DatabaseBus(state, self._registry, off_loop))

    async def join(self, bus: WorkerBus) -> None:
        """Join other workers. Call this before the first request; raises Unavailable."""

        async def apply(message: WorkerMessage) -> None:
            await self._mcp.apply(message)

        self._bus = bus
        await bus.start(apply)
        self._unlink = self._registry.changes.link(bus.forward_change, bus.forward_switch)
        self._must_join = False

    @cached_property
    def _console(self) -> ConsoleRoutes:
        # Imported here, so that servers without a console do not pay for it.
        from ..console.console_page import ConsoleRoutes

        return ConsoleRoutes(self.runtime, self._routes, self._options)

    @cached_property
    def _mcp(self) -> McpEndpoint:
        # Imported at the first MCP request; a server with only REST does not need it.
        from .mcp_endpoint import McpEndpoint

        return McpEndpoint(self.runtime, self._signer, self._bus, sessions=self._has_sessions)


def asgi_app(registry: Registry, options: WebOptions) -> AsgiApp:
    """Return an application for another server; warn about what breaks with several workers."""
    pages = [page.path for app in registry.apps() for page in app.routes]
    if options.mcp in pages or options.mcp.removeprefix(registry.contract.route) in registry.tools:
        raise BadOption(f"{options.mcp!r} cannot be the MCP path; a page or a tool uses it")
    if not options.auth and registry.auth is not None:
        raise BadOption("auth=False is for an app without auth=; leave one of the two out")
    runtime = runtime_on_loop(registry)
    is_shared = use_state(runtime, state_of())
    application = AsgiApp(runtime, options)
    _warn_of_several_workers(
        has_secret=not application.key_is_temporary,
        has_sessions=registry.sessions and not is_shared,
    )
    return application


def _warn_of_several_workers(*, has_secret: bool, has_sessions: bool) -> None:
    """Log what will not work if this process looks like one of several workers."""
    text = ("" if has_secret else _NO_SECRET) + (_NOT_SHARED if has_sessions else "")
    if not text:
        return
    # The environment or the arguments may set the number of workers; the last one wins.
    arguments = sys.argv[1:]
    values = [os.environ.get("WEB_CONCURRENCY", ""), os.environ.get("GRANIAN_WORKERS", "")]
    for index, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name in ("-w", "--workers"):
            values.append(value or "".join(arguments[index + 1 : index + 2]))
    counts = [int(value) for value in values if value.isdecimal()]
    if counts:
        is_one_of_several = counts[-1] > 1
    else:
        # A settings file may set the number, but it is not visible here.
        is_worker = _is_child() or "gunicorn.arbiter" in sys.modules
        is_one_of_several = is_worker and "--reload" not in sys.argv
    if is_one_of_several:
        logger().warning(_SEVERAL_WORKERS + text)


def _is_child() -> bool:
    """Return whether multiprocessing started this process (uvicorn, hypercorn, granian)."""
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


def _call_before_shutdown(close: Callable[[], None]) -> None:
    """Call *close* on the event loop as soon as a signal tells the server to stop.

    Servers notify the application of a shutdown only after all responses have ended, and never
    notify a mounted application, so an open stream would block the shutdown. Many servers then exit
    in a way that skips `atexit`. *close* is a bound method; the signal handlers stay installed but
    do not keep its object alive.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    if handlers[signal.SIGTERM] is signal.SIG_DFL and _is_child():
        # hypercorn sends SIGTERM to workers that are already shutting down. Without a handler, the
        # signal would kill the process before its records are written.
        def exit_while_running(number: int, frame: FrameType | None) -> None:
            if loop.is_running():
                sys.exit(128 + number)

        signal.signal(signal.SIGTERM, exit_while_running)
        return
    # A process without a SIGTERM handler is not a server that shuts down gracefully.
    if not callable(handlers[signal.SIGTERM]):
        return

    found = weakref.WeakMethod(close)

    def handle(number: int, frame: FrameType | None) -> object:
        if (method := found()) is not None:
            with suppress(RuntimeError):  # The loop is closed.
                loop.call_soon_threadsafe(method)
        handler = handlers[signal.Signals(number)]
        return handler(number, frame) if callable(handler) else None

    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, handle)


class Authenticated:
    """Authenticates requests to an AsgiApp."""

    def __init__(
        self, step: AuthenticationStep, routes: Routes, mcp_paths: tuple[str, ...]
    ) -> None:
        self.step = step
        self._routes = routes
        self._mcp_paths = mcp_paths

    async def answer(self, request: HttpRequest, body: bytes | Reply[Any]) -> HttpReply | None:
        """Return the response to a request that is refused or needs no user; None lets it proceed.

        `scope["user"]` is then the user, or None for an anonymous request.
        """
        if self.step.loopback_only:
            named = _names(request) if self.step.has_post(request.path) else []
            refused = self.step.refuse_others(*_addresses(request), *named)
            if refused is not None:
                return self._routes.refuse(refused, request)
        if request.method == "POST" and isinstance(body, bytes):
            answered = self.step.answer_post(request.path, body)
            if isinstance(answered, Reply):
                return self._routes.refuse(answered, request)
            if answered is not None:
                return HttpReply(200, answered, JSON, (("Cache-Control", "no-store"),))
        found = await self.step.identify(
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
    """Return the hosts that a request names; a proxy that names none adds an empty name.

    Another host's page may be allowed to call tools, but must not get a test token.
    """
    headers = request.headers
    names = [
        headers[name].decode("latin-1").lower().rpartition("://")[2]
        for name in (b"host", b"origin", b"x-forwarded-host")
        if name in headers
    ]
    return [*map(host_name, names), *([""] if b"via" in headers else [])]
