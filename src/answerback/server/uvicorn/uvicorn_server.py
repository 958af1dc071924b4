"""Serves an app with uvicorn: starts it, prints its addresses, drains and shuts down."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from ...calls.loop_thread import GivenLoop
from ...calls.runtime import Runtime
from ...core.log import logger, set_up_logging
from ...errors import needs_extra
from ...registry.declarations import Registry
from ...registry.lifespan import LifespanFailed, log_failure
from ...tools.current_call import CURRENT
from ..asgi.application import AsgiApp
from ..asgi.worker_sockets import SocketBus
from ..http.server_options import BadOption, ServeOptions, is_loopback
from .listening import (
    STOP_NOW,
    CannotListen,
    base_url,
    listens_on,
    prefork,
    remove_unix_socket,
    tls_context,
    worker_folder,
    write_line,
)
from .uvicorn_protocol import DrainState, UvicornProtocol, add_layers

with needs_extra("serve"):
    import uvicorn

if TYPE_CHECKING:
    from ..console.target_console import TargetConsole

# How often the server checks for a signal while the lifespan is starting.
_SIGNAL_SECONDS = 0.1
# How often the Date header is updated.
_TICK_SECONDS = 1
_BLOCKED = (
    "tool %r has blocked the event loop for %.1f s or more; write def, or await "
    "asyncio.to_thread(…) for blocking code"
)
# Calls that finish within this delay are not worth a "finishing N calls" message.
_QUIET_DRAIN_SECONDS = 0.3
# Time limit for TLS handshakes on the last connections.
_ACCEPT_SECONDS = 1
# Time limit for writing the records when the process must exit immediately.
_FLUSH_SECONDS = 1
# Longer than a cancelled lifespan has to end.
_SPARE_SECONDS = 2


class _Server(uvicorn.Server):
    """uvicorn's server for one process; *on_serving* is called once it is serving.

    The file *ending* exists once all workers are shutting down; "" without workers.
    """

    def __init__(
        self,
        application: AsgiApp,
        bus: SocketBus | None,
        on_serving: Callable[[], None],
        options: ServeOptions,
        ending: str = "",
    ) -> None:
        seconds = application.runtime.registry.limits.shutdown
        layered: Any = add_layers(application, options)
        config = uvicorn.Config(
            layered,
            http=UvicornProtocol,
            ws="none",
            log_level=options.log_level or "warning",
            access_log=False,
            # With --log-level, uvicorn's loggers behave like all the others.
            log_config=None if options.log_level else uvicorn.config.LOGGING_CONFIG,
            server_header=False,
            # AsgiApp reads headers from trusted proxies; uvicorn would trust every local proxy.
            proxy_headers=False,
            timeout_graceful_shutdown=max(1, round(seconds)),
            timeout_keep_alive=options.keep_alive,
            # The server runs the lifespan itself, to report failures and limit the shutdown time.
            lifespan="off",
        )
        config.load()
        config.ssl = tls_context(options)
        super().__init__(config)
        self.server_state = self._state = DrainState()
        self._application = application
        self._bus = bus
        self._options = options
        self._is_single = options.workers == 1
        self._ending = ending
        self._on_serving = on_serving
        self._signalled = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop, while the server is serving."""
        self._seconds = seconds
        """The seconds that calls, then tasks, then the lifespan each have to end."""
        self.was_interrupted = False
        """Whether Ctrl-C ended the server on another program's loop."""
        self.failure: LifespanFailed | None = None
        """Why the lifespan did not start or end."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if not self._is_single:
            signal.signal(STOP_NOW, self.stop)
        if self._bus is not None:
            await self._application.join(self._bus)
        # All requests inherit this context, so that the author's pages find the runtime.
        CURRENT.set(self._application.runtime)
        starting = asyncio.ensure_future(self._application.start())
        while not (await asyncio.wait({starting}, timeout=_SIGNAL_SECONDS))[0]:
            if self.should_exit:  # A signal has arrived.
                starting.cancel()
                await self._end_lifespan()
                return
        self.failure = starting.result()
        if self.failure is not None:
            self.should_exit = True
            return
        await super().startup(sockets)
        if self.started:
            self._loop = asyncio.get_running_loop()
            self._on_serving()

    async def _end_lifespan(self) -> None:
        # In a thread, because the end of the lifespan may block the event loop.
        waits = 1 if self._application.runtime.tasks is None else 2
        bound = waits * self._seconds + _SPARE_SECONDS
        watchdog = threading.Timer(bound, self._exit_without_lifespan)
        watchdog.daemon = True
        watchdog.start()
        self.failure = await self._application.stop()
        watchdog.cancel()
        if self.failure is not None and self.failure.is_hanging:
            # The loop would wait for it forever.
            self._flush_within_bound()
            os._exit(1)

    def _exit_without_lifespan(self) -> None:
        log_failure(LifespanFailed(f"the lifespan did not end within {self._seconds:g} seconds"))
        self._flush_within_bound()
        os._exit(1)

    async def main_loop(self) -> None:
        """Run uvicorn's loop, but wake up once a second for the Date header, not ten times."""
        watch = _LoopWatch(self._application.runtime.registry)
        while not await self.on_tick(0):
            watch.ticked = monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._signalled.wait()
        self._loop = None
        watch.ended.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn waits until every response is complete, so open streams must end first.
        self._application.close()
        loop = asyncio.get_running_loop()
        message = loop.call_later(_QUIET_DRAIN_SECONDS, self._print_running_calls)
        if not self._ending or os.path.exists(self._ending):
            remove_unix_socket(self._options)
        # Accept the waiting connections, which the system would otherwise reset.
        waiting = []
        for listener in sockets or []:
            listener.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    waiting.append(listener.accept()[0])
        for server in self.servers:
            server.close()
        tls = self.config.ssl
        protocol = partial(UvicornProtocol, self.config, self._state, self.lifespan.state)
        accepted = [loop.connect_accepted_socket(protocol, each, ssl=tls) for each in waiting]
        if accepted:
            await asyncio.wait(map(asyncio.ensure_future, accepted), timeout=_ACCEPT_SECONDS)
        await super().shutdown(sockets)
        message.cancel()
        await self._end_lifespan()

    def _print_running_calls(self) -> None:
        if count := len(self.server_state.tasks):
            seconds = self.config.timeout_graceful_shutdown
            hint = f"for up to {seconds} seconds; press Ctrl-C again to stop immediately"
            self._print(f"finishing {_count(count, 'call')}, {hint}")

    def _print(self, line: str) -> None:
        write_line(line if self._is_single else f"worker {os.getpid()}: {line}")

    def _drain(self) -> None:
        if self._state.is_draining:
            return
        self._application.is_draining = True
        self._state.drain()
        seconds = self._options.drain
        self._print(f"draining for {_count(seconds, 'second')}; another signal skips this")
        asyncio.get_running_loop().call_later(seconds, self.stop)

    def stop(self, *_: object) -> None:
        """Shut down now, whether the server is draining or not."""
        self.should_exit = True
        self._in_loop(self._signalled.set)

    def _in_loop(self, step: Callable[[], None]) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(step)

    async def serve_on_given_loop(self, listener: socket.socket) -> None:
        """Serve on another program's loop, leaving its signal handlers unchanged."""
        with self.capture_signals():
            await self._serve([listener])
            self.was_interrupted = signal.SIGINT in self._captured_signals
            # uvicorn would raise them again, in the middle of the program.
            self._captured_signals.clear()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            # A second Ctrl-C ends the process here: a tool may block the event loop, or suppress
            # its cancellation.
            self._flush_within_bound()
            os._exit(128 + sig)
        can_drain = self._options.drain and self._loop is not None and not self.should_exit
        # A worker may get SIGTERM twice, from systemd and from its parent: it keeps draining.
        is_second = self._is_single and self._state.is_draining
        if sig == signal.SIGTERM and can_drain and not is_second:
            self._in_loop(self._drain)
            return
        super().handle_exit(sig, frame)
        self.stop()

    def _flush_within_bound(self) -> None:
        flushing = threading.Thread(target=self._application.runtime.write_records, daemon=True)
        flushing.start()
        flushing.join(_FLUSH_SECONDS)


class _LoopWatch:
    """Warns about async tools that block the event loop.

    A separate thread watches, so that calls have no overhead. The loop sets `ticked` every
    `_TICK_SECONDS`, unless something blocks it.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._loop_thread = threading.get_ident()
        self.ticked = monotonic()
        self.ended = threading.Event()
        threading.Thread(target=self._watch, name="answerback-watch", daemon=True).start()

    def _watch(self) -> None:
        suspect: FrameType | None = None
        reported = 0.0
        while not self.ended.wait(_TICK_SECONDS / 2):
            ticked = self.ticked
            late = monotonic() - ticked - _TICK_SECONDS
            if late < _TICK_SECONDS or reported == ticked:
                suspect = None
                continue
            tools = {
                tool.source.function.__code__: tool.name
                for tool in self._registry.tools.values()
                if tool.is_async
            }
            # The frame of the async tool that the event loop is running now, if any.
            before, suspect = suspect, sys._current_frames().get(self._loop_thread)
            while suspect is not None and suspect.f_code not in tools:
                suspect = suspect.f_back
            # Seen twice in a row: a tool that is merely slow is seen once.
            if suspect is not None and suspect is before:
                reported = ticked
                logger().warning(_BLOCKED, tools[suspect.f_code], late)


class _ConsoleServer(uvicorn.Server):
    """uvicorn's server for the target console."""

    def __init__(self, application: TargetConsole) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=UvicornProtocol,
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="off",
            )
        )
        self._application = application

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # This also ends the open streams, which uvicorn would wait for.
        await self._application.close()
        await super().shutdown(sockets)


def serve_targets(application: TargetConsole, listener: socket.socket) -> None:
    """Serve the target console until a signal arrives."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _ConsoleServer(application).run(sockets=[listener])


def _application(runtime: Runtime, options: ServeOptions) -> AsgiApp:
    set_up_logging(options.log_level)
    is_open = options.uds is not None or not is_loopback(options.host)
    auth = runtime.auth
    if auth is not None and auth.loopback_only and (is_open or options.web.trusted_proxies):
        raise BadOption(
            "development tokens only work on this machine: give --host 127.0.0.1, "
            "and neither --uds nor --trust-proxy"
        )
    application = AsgiApp(runtime, options.web)
    application.under_other_server = False
    return application


def serve_on(
    loop: GivenLoop, runtime: Runtime, options: ServeOptions, listener: socket.socket
) -> int:
    """Serve on another program's loop, until a signal arrives or *loop* is stopped."""
    application = _application(runtime, options)
    on_serving = partial(_announce, runtime, options, listener, application.key_is_temporary)
    server = _Server(application, None, on_serving, options)
    loop.on_stop(server.stop)
    try:
        loop.run(server.serve_on_given_loop(listener))
    finally:
        runtime.write_records()
    if server.failure is not None:
        raise server.failure
    if server.was_interrupted:
        raise KeyboardInterrupt
    return 0


def serve(runtime: Runtime, options: ServeOptions, listener: socket.socket) -> int:
    """Serve until a signal arrives, and return the exit status."""
    application = _application(runtime, options)
    if options.workers > 1 and not hasattr(os, "fork"):
        raise CannotListen("--workers needs fork, which this system does not have; leave it out")

    announce = partial(_announce, runtime, options, listener, application.key_is_temporary)

    def run(bus: SocketBus | None, on_serving: Callable[[], None], ending: str = "") -> None:
        server = _Server(application, bus, on_serving, options, ending)

        def on_sigterm(*_: object) -> None:
            # uvicorn handles the signal while serving, and raises it again after the shutdown.
            # Before serving, there is nothing to shut down.
            if not server.started:
                os._exit(0)
            sys.exit(server.failure is not None)

        signal.signal(signal.SIGTERM, on_sigterm)
        try:
            server.run(sockets=[listener])
        finally:
            # A worker exits with os._exit, which skips atexit functions.
            runtime.write_records()
        if server.failure is not None:
            raise server.failure

    if options.workers == 1:
        run(None, announce)
        return 0
    with worker_folder() as folder:
        # Workers share tasks and stored replies in files, which are removed when the server ends.
        registry = runtime.registry
        if (registry.has_tasks or registry.has_keys) and runtime.task_store is None:
            from ...tasks.sqlite_store import SQLiteStore

            runtime.task_store = SQLiteStore(os.path.join(folder, "tasks.db"), durable=False)
        runtime.replies_file = os.path.join(folder, "replies.db")
        ending = os.path.join(folder, "ending")

        def run_worker(number: int, on_serving: Callable[[], None]) -> None:
            # With shared state, the database carries the workers' messages, as between hosts.
            is_alone = runtime.state is None
            bus = SocketBus(folder, number, options.workers) if is_alone else None
            run(bus, on_serving, ending)

        return prefork(options.workers, run_worker, listener, ending, started=announce)


def _announce(
    runtime: Runtime, options: ServeOptions, listener: socket.socket, key_is_temporary: bool
) -> None:
    registry = runtime.registry
    url = base_url(options, listener)
    title = f"{registry.name} {registry.version}: {_count(len(registry.tools), 'tool')}"
    if options.restarted:
        write_line(f"{title}, reloaded")
        return
    if options.web.only_health:
        write_line(f"{title}, runs tasks; health at {url}/healthz\nCtrl-C ends it.")
        return
    lines = [
        f"{title}{listens_on(options)}",
        *([f"  console    GET  {url}/ in a browser"] if options.web.console else ()),
        f"  functions  POST {url}{registry.contract.route}NAME",
        f"  MCP        POST {url}/mcp",
        f"  list       GET  {url}/functions",
        f"  OpenAPI    GET  {url}/openapi.json",
        f"  health     GET  {url}/healthz",
        f"  readiness  GET  {url}/readyz",
    ]
    for app in registry.apps():
        for page in app.routes:
            lines.append(f"  page       {' '.join(page.methods):<4} {url}{page.path}")
    if runtime.auth is not None and runtime.auth.loopback_only:
        lines += [
            f"  tokens     POST {url}/dev/token, or: answerback token {url} --user NAME",
            "WARNING: DEVELOPMENT AUTH: anyone on this machine gets a token for any user",
        ]
    on_loopback = options.uds is not None or is_loopback(listener.getsockname()[0])
    if not on_loopback and registry.auth is None:
        lines.append(
            "warning: nothing authenticates clients; anyone who can reach this address can call it"
        )
    # A developer who restarts a local server knows that its sessions end.
    has_sessions = options.web.sessions and registry.sessions
    if key_is_temporary and has_sessions and (options.workers > 1 or not on_loopback):
        lines.append(
            "warning: MCP sessions end with this server; set ANSWERBACK_SECRET to keep them"
        )
    lines.append("Ctrl-C ends it.")
    write_line("\n".join(lines))


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
