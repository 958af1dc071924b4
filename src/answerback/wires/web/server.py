"""Serves an App on a port: binds, says where everything is, and ends in good order."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import msgspec

from ...errors import AnswerbackError, needs_extra
from .options import ServeOptions, WebOptions

with needs_extra("serve"):
    import uvicorn
    from uvicorn.supervisors import Multiprocess

if TYPE_CHECKING:
    from ...app import App
    from .site import Site

_DRAIN_SECONDS = 30
_BACKLOG = 2048


class CannotListen(AnswerbackError):
    code = "CANNOT_LISTEN"


class Worker(msgspec.Struct, frozen=True):
    """Makes the application in a process of its own, from the file it is in."""

    target: str
    web: WebOptions

    def __call__(self) -> Site:
        from ...cli.target import load
        from . import asgi

        return asgi(load(self.target), self.web)


def serve(app: App, target: str, options: ServeOptions) -> None:
    """Serve until a signal; *target* is where other processes find the same App."""
    from . import asgi

    listener = _bind(options)
    _announce(app, options, listener)
    if options.workers == 1:
        server = uvicorn.Server(_config(asgi(app, options.web), options))
        server.run(sockets=[listener])
    else:
        config = _config(Worker(target, options.web), options)
        Multiprocess(config, target=uvicorn.Server(config).run, sockets=[listener]).run()


def _config(application: Site | Worker, options: ServeOptions) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        factory=isinstance(application, Worker),
        workers=options.workers,
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
        raise CannotListen(
            f"cannot listen on {options.host}:{options.port}: {why}; try another --port"
        ) from None
    listener.set_inheritable(True)
    return listener


def _announce(app: App, options: ServeOptions, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    here = f"http://{host}:{port}"
    route = app.contract.route
    lines = [
        f"{app.name} {app.version}: {len(app.tools)} tools",
        f"  functions  POST {here}{route}NAME",
        f"  list       GET  {here}/functions",
        f"  OpenAPI    GET  {here}/openapi.json",
        f"  health     GET  {here}/healthz",
        "Ctrl-C ends it.",
    ]
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()
