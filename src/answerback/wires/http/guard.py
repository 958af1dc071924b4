"""Who may speak to the server at all: not a page from elsewhere, nor a name that is not ours.

A browser will happily send a stranger's page's requests to a server on this machine;
`Host` and `Origin` are how such a request can be told (DNS rebinding).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...reply import Error, Reply, failure
from .options import WebOptions, host_name

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
_SHOWN = 100


class Guard:
    def __init__(self, options: WebOptions) -> None:
        self._hosts = frozenset(options.hosts)
        self._origins = frozenset(options.origins)
        # Few callers say anything new.
        self._judge_once = lru_cache(64)(self._judge)

    def refuse(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Reply[Any] | None:
        """The reply to one who may not speak, or None."""
        server = scope.get("server")
        address = server[0] if server else ""
        wrong = self._judge_once(address, headers.get(b"host", b""), headers.get(b"origin"))
        return None if wrong is None else failure(wrong.message, code=wrong.code)

    def _judge(self, address: str, host: bytes, origin: bytes | None) -> Error | None:
        name = host.decode("latin-1").lower()
        if not self._knows(name, address):
            said = name[:_SHOWN] or "none was named"
            return Error(
                "FOREIGN_HOST", f"Foreign host: {said}; allow it with --allow-host or hosts="
            )
        if origin is None or self._welcomes(page := origin.decode("latin-1").lower(), name):
            return None
        return Error(
            "FOREIGN_ORIGIN",
            f"Foreign origin: {page[:_SHOWN]}; allow it with --allow-origin or origins=",
        )

    def _knows(self, host: str, address: str) -> bool:
        on_loopback = _is_loopback(address.removeprefix("::ffff:"))
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
