"""Who may speak to the server at all: not a page from elsewhere, nor a name that is not ours.

A browser will happily send a stranger's page's requests to a server on this machine;
`Host` and `Origin` are how such a request can be told (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ...reply import Reply, failure
from .options import WebOptions

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    def __init__(self, options: WebOptions) -> None:
        self._hosts = frozenset(host.lower() for host in options.hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.origins)

    def refuse(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Reply[Any] | None:
        """The reply to one who may not speak, or None."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._knows(host, scope):
            return failure(
                f"Foreign host: {host}",
                code="FOREIGN_HOST",
                hint=f"start the server with --allow-host {_name(host)}",
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._welcomes(origin.decode("latin-1").lower(), host):
            return failure(
                f"Foreign origin: {origin.decode('latin-1')}",
                code="FOREIGN_ORIGIN",
                hint=f"start the server with --allow-origin {origin.decode('latin-1')}",
            )
        return None

    def _knows(self, host: str, scope: Mapping[str, Any]) -> bool:
        name = _name(host)
        if name in self._hosts or "*" in self._hosts:
            return True
        if self._hosts:
            return False
        server = scope.get("server")
        on_loopback = server is not None and server[0] in LOOPBACK
        return not on_loopback or name in LOOPBACK

    def _welcomes(self, origin: str, host: str) -> bool:
        return (
            origin in self._origins or "*" in self._origins or urlsplit(origin).netloc == host != ""
        )


def _name(host: str) -> str:
    """The host without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
