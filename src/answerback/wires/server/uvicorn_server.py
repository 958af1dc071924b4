"""Serves an app on a port: binds the socket, prints the addresses, and shuts down gracefully."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

from ...errors import AnswerbackError, needs_extra
from ..asgi import asgi
from ..asgi.worker_bus import SocketBus
from ..http.guard import is_loopback
from ..http.options import ServeOptions
from .prefork import prefork
from .uvicorn_protocol import UvicornProtocol

with needs_extra("serve"):
    import uvicorn

if TYPE_CHECKING:
    from ...calls.handlers import Handlers
    from ...lifespan import LifespanFailed
    from ...registry import Registry
    from ..asgi.application import AsgiApp

# How often the server looks for a signal while the lifespan starts.
_SIGNAL_SECONDS = 0.1
# Calls that finish within this delay are not worth a "finishing N calls" message.
_QUIET_DRAIN_SECONDS = 0.3
# The time that the records get to be written when the process is ended at once.
_FLUSH_SECONDS = 1
_BACKLOG = 2048
# The hosts that mean every address of the machine, and an address that a client can call.
_ALL_ADDRESSES = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_WRONG_HOST = (errno.EADDRNOTAVAIL, socket.EAI_NONAME)


class CannotListen(AnswerbackError):
    code = "CANNOT_LISTEN"


class _Server(uvicorn.Server):
    """uvicorn's server for one process; *ready* is called once it serves."""

    def __init__(
        self,
        application: AsgiApp,
        bus: SocketBus | None,
        ready: Callable[[], None],
        flush_records: Callable[[], None],
        seconds: float,
    ) -> None:
        super().__init__(_config(application, seconds))
        self._application = application
        self._bus = bus
        self._ready = ready
        self._flush_records = flush_records
        self.failure: LifespanFailed | None = None
        """The reason why the lifespan did not start or end."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._bus is not None:
            await self._application.join(self._bus)
        if not await self._start_lifespan():
            self.should_exit = True
            return
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def _start_lifespan(self) -> bool:
        """Start the lifespan; False if it failed, or if a signal came meanwhile."""
        starting = asyncio.ensure_future(self._application.start())
        while not (await asyncio.wait({starting}, timeout=_SIGNAL_SECONDS))[0]:
            if self.should_exit:
                starting.cancel()
                await self._end_lifespan()
                return False
        self.failure = starting.result()
        return self.failure is None

    async def _end_lifespan(self) -> None:
        self.failure = await self._application.stop()
        if self.failure is not None and self.failure.is_hanging:
            # The loop would wait for it without an end.
            self._flush_within_bound()
            os._exit(1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn waits until every response is complete, so the open streams must be ended.
        self._application.close()
        loop = asyncio.get_running_loop()
        message = loop.call_later(_QUIET_DRAIN_SECONDS, self._print_running_calls)
        await super().shutdown(sockets)
        message.cancel()
        await self._end_lifespan()

    def _print_running_calls(self) -> None:
        if count := len(self.server_state.tasks):
            prefix = "" if self._bus is None else f"worker {os.getpid()}: "
            calls = _count(count, "call")
            seconds = self.config.timeout_graceful_shutdown
            hint = f"for up to {seconds} seconds; Ctrl-C again ends it at once"
            sys.stderr.write(f"{prefix}finishing {calls}, {hint}\n")
            sys.stderr.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            # A second Ctrl-C ends the process here: a tool may block the event loop, or suppress
            # its cancellation.
            self._flush_within_bound()
            os._exit(128 + sig)
        super().handle_exit(sig, frame)

    def raise_failure(self) -> None:
        """Raise LifespanFailed, if the lifespan did not start or end."""
        if self.failure is not None:
            raise self.failure

    def _flush_within_bound(self) -> None:
        flushing = threading.Thread(target=self._flush_records, daemon=True)
        flushing.start()
        flushing.join(_FLUSH_SECONDS)


def serve(registry: Registry, handlers: Handlers, options: ServeOptions) -> int:
    """Serve until a signal, and return the exit status."""
    application = asgi(registry, handlers, options.web)
    application.under_other_server = False
    if options.workers > 1 and not hasattr(os, "fork"):
        raise CannotListen("--workers needs fork, which this system does not have; leave it out")
    listener = _bind(options)

    def flush_records() -> None:
        if registry.records is not None:
            registry.records.close()

    def run(bus: SocketBus | None, ready: Callable[[], None]) -> None:
        server = _Server(application, bus, ready, flush_records, registry.limits.shutdown)

        def on_sigterm(*_: object) -> None:
            # uvicorn handles the signal while it serves, and raises it again after the shutdown.
            # Before it serves there is nothing to shut down.
            if not server.started:
                os._exit(0)
            sys.exit(server.failure is not None)

        signal.signal(signal.SIGTERM, on_sigterm)
        try:
            server.run(sockets=[listener])
        finally:
            # A worker exits with os._exit, which runs no atexit functions.
            flush_records()
        server.raise_failure()

    def announce() -> None:
        _announce(registry, options, listener, application.key_is_temporary)

    if options.workers == 1:
        run(None, announce)
        return 0
    with TemporaryDirectory(prefix="answerback-") as folder:
        count = options.workers

        def run_worker(number: int, ready: Callable[[], None]) -> None:
            run(SocketBus(folder, number, count), ready)

        return prefork(count, run_worker, listener, started=announce)


def _config(application: AsgiApp, seconds: float) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=UvicornProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        # AsgiApp reads the headers of trusted proxies; uvicorn would trust every local one.
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(seconds)),
        # The server runs the lifespan itself, to report a failure and to bound its end.
        lifespan="off",
    )


def _bind(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that were created with IPPROTO_TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
        # From here on clients can connect, so the addresses are valid when they are printed.
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as exc:
        listener.close()
        reason = getattr(exc, "strerror", None) or exc
        flag = "--host" if getattr(exc, "errno", None) in _WRONG_HOST else "--port"
        raise CannotListen(
            f"cannot listen on {options.host}:{options.port}: {reason}; try another {flag}"
        ) from None
    return listener


def _announce(
    registry: Registry, options: ServeOptions, listener: socket.socket, key_is_temporary: bool
) -> None:
    port = listener.getsockname()[1]
    # The printed address must be one that a client can call, and 0.0.0.0 is not.
    host = _ALL_ADDRESSES.get(options.host, options.host)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    where = ", on every address of this machine" if options.host in _ALL_ADDRESSES else ""
    route = registry.contract.route
    lines = [
        f"{registry.name} {registry.version}: {_count(len(registry.tools), 'tool')}{where}",
        f"  functions  POST {url}{route}NAME",
        f"  MCP        POST {url}/mcp",
        f"  list       GET  {url}/functions",
        f"  OpenAPI    GET  {url}/openapi.json",
        f"  health     GET  {url}/healthz",
        f"  readiness  GET  {url}/readyz",
        *_warnings(options, is_loopback(listener.getsockname()[0]), key_is_temporary),
        "Ctrl-C ends it.",
    ]
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()


def _warnings(options: ServeOptions, on_loopback: bool, key_is_temporary: bool) -> Iterator[str]:
    if not on_loopback:
        yield "warning: nothing authenticates clients; whoever reaches this address can call it"
    # A developer who restarts a server on the own machine knows that its sessions end.
    if key_is_temporary and (options.workers > 1 or not on_loopback):
        yield "warning: MCP sessions end with this server; set ANSWERBACK_SECRET to keep them"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
