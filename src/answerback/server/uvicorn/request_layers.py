"""Layers of `serve` around the ASGI application: a path prefix, a request log, a check of clients.

Each layer exists only if its flag was given.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

from ...contract import STANDARD
from ...core.reply import failure
from ...core.shape import RESULT
from ...dialects import write
from ..asgi.request import HttpRequest, Message, Receive, Scope, Send, joined_headers
from ..http.host_and_origin import is_local
from ..http.server_options import ServeOptions, networks

if TYPE_CHECKING:
    from ..http.forwarded import TrustedProxies

Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def add_layers(application: Application, options: ServeOptions) -> Application:
    """Return the application with the layers *options* ask for; the request log is outermost."""
    if options.debug:
        application = _only_local_clients(application)
    if options.root_path:
        application = _below_prefix(application, options.root_path)
    if options.access_log:
        from ..http.forwarded import TrustedProxies

        proxies = TrustedProxies(networks(options.web.trusted_proxies))
        application = _logged(application, proxies)
    return application


def _below_prefix(application: Application, prefix: str) -> Application:
    """Answer below *prefix* and, because most proxies remove it, without it."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["root_path"] = prefix
            if not f"{scope['path']}/".startswith(f"{prefix}/"):
                scope["path"] = prefix + scope["path"]
        await application(scope, receive, send)

    return answer


def _only_local_clients(application: Application) -> Application:
    """Refuse clients on other machines, even behind a proxy on this machine."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_local(scope, joined_headers(scope)):
            await application(scope, receive, send)
            return
        refusal = failure(
            "This server was started with --debug, so it answers only clients on its own machine",
            code="FORBIDDEN",
        )
        written = write(refusal, "rest", RESULT, STANDARD)
        await HttpRequest(scope, receive, send).respond_with(written)

    return answer


def _logged(application: Application, proxies: TrustedProxies) -> Application:
    """Log one line for each request, when its response is complete."""
    logger = _access_logger()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        client = _client_address(scope, proxies)
        request = f"{scope['method']} {_printable(scope['path'])}"
        status: list[int] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])
            await send(message)

        start = time.perf_counter()
        try:
            await application(scope, receive, watched)
        finally:
            duration = (time.perf_counter() - start) * 1000
            logger.info("%s %s %s %.1f ms", client, request, status[0] if status else "-", duration)

    return answer


def _access_logger() -> logging.Logger:
    logger = logging.getLogger("answerback.access")
    logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
    return logger


def _client_address(scope: Scope, proxies: TrustedProxies) -> str:
    client = scope.get("client")
    if client is None:
        return "-"
    address: str = client[0]
    forwarded = proxies.read(joined_headers(scope)).client if proxies.trusts(address) else None
    return forwarded or address


def _printable(path: str) -> str:
    """Return the path without characters that a terminal would obey, or that would end the line."""
    return path if path.isprintable() and " " not in path else quote(path)
