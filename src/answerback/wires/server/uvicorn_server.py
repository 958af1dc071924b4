"""Serves an app on a port: binds, prints the addresses, and shuts down in order."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

from ...errors import AnswerbackError, needs_extra
from ..asgi import asgi
from ..asgi.worker_bus import SocketBus
from ..http.options import ServeOptions
from .prefork import prefork
from .uvicorn_protocol import UvicornProtocol

with needs_extra("serve"):
    import uvicorn

if TYPE_CHECKING:
    from ...calls.handlers import Handlers
    from ...registry import Registry
    from ..asgi.application import AsgiApp

_DRAIN_SECONDS = 30
# What is done by then was nothing to wait for.
_A_MOMENT = 0.3
_LAST_SECONDS = 1
_BACKLOG = 2048
_EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_NOT_HERE = (errno.EADDRNOTAVAIL, socket.EAI_NONAME)


class CannotListen(AnswerbackError):
    code = "CANNOT_LISTEN"


class _Server(uvicorn.Server):
    """Says when it serves; and tells the site when it begins and when it is time to go."""

    def __init__(
        self,
        site: AsgiApp,
        bus: SocketBus | None,
        serving: Callable[[], None],
        keep: Callable[[], None],
    ) -> None:
        super().__init__(_config(site))
        self._site = site
        self._bus = bus
        self._serving = serving
        self._keep = keep

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._bus is not None:
            await self._site.join(self._bus)
        await super().startup(sockets)
        if self.started:
            self._serving()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn waits for every answer: the streams that stay open must be told to end.
        self._site.close()
        telling = asyncio.get_running_loop().call_later(_A_MOMENT, self._tell_what_is_left)
        await super().shutdown(sockets)
        telling.cancel()

    def _tell_what_is_left(self) -> None:
        if count := len(self.server_state.tasks):
            who = "" if self._bus is None else f"worker {os.getpid()}: "
            calls = "1 call" if count == 1 else f"{count} calls"
            rest = f"for up to {_DRAIN_SECONDS} seconds; Ctrl-C again ends it at once"
            sys.stderr.write(f"{who}finishing {calls}, {rest}\n")
            sys.stderr.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            # Whatever runs, and wherever: a tool may keep the loop, or not let itself be cancelled.
            keeping = threading.Thread(target=self._keep, daemon=True)
            keeping.start()
            keeping.join(_LAST_SECONDS)
            os._exit(128 + sig)
        super().handle_exit(sig, frame)


def serve(registry: Registry, handlers: Handlers, options: ServeOptions) -> int:
    """Serve until a signal; the exit status."""
    site = asgi(registry, handlers, options.web)
    if options.workers > 1 and not hasattr(os, "fork"):
        raise CannotListen("--workers needs fork, which this system does not have; leave it out")
    listener = _bind(options)

    def keep() -> None:
        if registry.records is not None:
            registry.records.close()

    def work(bus: SocketBus | None, serving: Callable[[], None]) -> None:
        server = _Server(site, bus, serving, keep)

        def leave(*_: object) -> None:
            # Raised again by uvicorn when all is done; before it has begun there is nothing to do.
            if not server.started:
                os._exit(0)
            sys.exit(0)

        signal.signal(signal.SIGTERM, leave)
        try:
            server.run(sockets=[listener])
        finally:
            # A worker leaves by os._exit, which runs nothing that was registered for the end.
            keep()

    def announce() -> None:
        _announce(registry, options, listener)

    if options.workers == 1:
        work(None, announce)
        return 0
    with TemporaryDirectory(prefix="answerback-") as folder:
        count = options.workers

        def work_at(place: int, serving: Callable[[], None]) -> None:
            work(SocketBus(folder, place, count), serving)

        return prefork(count, work_at, listener, started=announce)


def _config(site: AsgiApp) -> uvicorn.Config:
    return uvicorn.Config(
        site,
        http=UvicornProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )


def _bind(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # asyncio turns Nagle's delay off only for sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
        # From here on a caller is let in, if only to wait: what is announced is true.
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as exc:
        listener.close()
        why = getattr(exc, "strerror", None) or exc
        other = "--host" if getattr(exc, "errno", None) in _NOT_HERE else "--port"
        raise CannotListen(
            f"cannot listen on {options.host}:{options.port}: {why}; try another {other}"
        ) from None
    return listener


def _announce(registry: Registry, options: ServeOptions, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    # What is announced can be called: nobody is at 0.0.0.0.
    host = _EVERYWHERE.get(options.host, options.host)
    here = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    where = ", on every address of this machine" if options.host in _EVERYWHERE else ""
    route = registry.contract.route
    lines = [
        f"{registry.name} {registry.version}: {len(registry.tools)} tools{where}",
        f"  functions  POST {here}{route}NAME",
        f"  MCP        POST {here}/mcp",
        f"  list       GET  {here}/functions",
        f"  OpenAPI    GET  {here}/openapi.json",
        f"  health     GET  {here}/healthz",
        "Ctrl-C ends it.",
    ]
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()
