"""Who may speak to the server at all: not a page from elsewhere, nor a name that is not ours.

A browser will happily send a stranger's page's requests to a server on this machine;
`Host` and `Origin` are how such a request can be told (DNS rebinding).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...reply import Reply, failure
from .options import WebOptions, host_name

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
_SHOWN = 100


class Guard:
    def __init__(self, options: WebOptions) -> None:
        self._hosts = frozenset(options.hosts)
        self._origins = frozenset(options.origins)

    def refuse(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Reply[Any] | None:
        """The reply to one who may not speak, or None."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._knows(host, scope.get("server")):
            said = host[:_SHOWN] or "none was named"
            return failure(
                f"Foreign host: {said}; allow it with --allow-host or hosts=", code="FOREIGN_HOST"
            )
        if b"origin" not in headers:
            return None
        origin = headers[b"origin"].decode("latin-1").lower()
        if self._welcomes(origin, host):
            return None
        return failure(
            f"Foreign origin: {origin[:_SHOWN]}; allow it with --allow-origin or origins=",
            code="FOREIGN_ORIGIN",
        )

    def _knows(self, host: str, server: tuple[str, int | None] | None) -> bool:
        on_loopback = server is not None and _is_loopback(server[0].removeprefix("::ffff:"))
        if not (on_loopback or self._hosts) or "*" in self._hosts:
            return True
        name = host_name(host)
        return name in self._hosts or (on_loopback and _is_loopback(name))

    def _welcomes(self, origin: str, host: str) -> bool:
        # Its own pages, whatever the scheme: TLS may end in front of us.
        own = host != "" and origin.partition("://")[2] == host
        return own or origin in self._origins or "*" in self._origins


def _is_loopback(name: str) -> bool:
    return _LOOPBACK.fullmatch(name) is not None
