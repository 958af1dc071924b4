"""Serves an App on a port: binds, says where everything is, and ends in good order."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

from ...errors import AnswerbackError, needs_extra
from . import asgi
from .options import ServeOptions
from .workers import prefork

with needs_extra("serve"):
    import uvicorn

if TYPE_CHECKING:
    from ...app import App
    from .site import Site

_DRAIN_SECONDS = 30
_BACKLOG = 2048


class CannotListen(AnswerbackError):
    code = "CANNOT_LISTEN"


def serve(app: App, options: ServeOptions) -> int:
    """Serve until a signal; the exit status."""
    listener = _bind(options)
    config = _config(asgi(app, options.web))
    _announce(app, options, listener)
    if options.workers == 1:
        uvicorn.Server(config).run(sockets=[listener])
        return 0
    if not hasattr(os, "fork"):
        raise CannotListen("--workers needs fork, which this system does not have; leave it out")
    return prefork(options.workers, lambda: uvicorn.Server(config).run(sockets=[listener]))


def _config(site: Site) -> uvicorn.Config:
    return uvicorn.Config(
        site,
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
