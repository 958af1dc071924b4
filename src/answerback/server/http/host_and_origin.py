"""Refuses requests with a foreign `Host` or `Origin` header, as in DNS rebinding attacks.

A browser lets any web page send requests to a server on the user's own machine. The two headers
show that the request comes from such a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from ...core.reply import Error, Reply, failure
from .server_options import WebOptions, host_name, is_loopback

FORWARDED_HOST = "answerback.forwarded_host"
"""The scope key of the host that a trusted proxy received."""
_PROXY_HEADERS = frozenset(
    b"forwarded via x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip".split()
)
_MAX_SHOWN = 100


def is_local(scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a client on this machine sent the request, and no proxy passed it on."""
    client = scope.get("client")
    if client is None or not _PROXY_HEADERS.isdisjoint(headers):
        return False
    return is_loopback(client[0].removeprefix("::ffff:"))


class Guard:
    """Checks the host and the origin of each request against the allowed ones."""

    def __init__(self, options: WebOptions) -> None:
        self._hosts = frozenset(options.hosts)
        self._only_addresses = options.only_addresses
        self._origins = frozenset(options.origins)
        # Most requests have the same headers.
        self._find_error = lru_cache(64)(self._check)

    def refuse(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Reply[Any] | None:
        """Return the refusal of a request from a foreign host or origin, or None."""
        server = scope.get("server")
        address = server[0] if server else ""
        error = self._find_error(
            address,
            headers.get(b"host", b""),
            headers.get(b"origin"),
            scope.get(FORWARDED_HOST),
        )
        return None if error is None else failure(error.message, code=error.code)

    def is_probe(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a refused request for a health page may be a load balancer's own.

        Load balancers and Kubernetes name the server by an address, which differs for each of its
        machines.
        """
        is_passed_on = b"origin" in headers or scope.get(FORWARDED_HOST) is not None
        name = host_name(headers.get(b"host", b"").decode("latin-1").lower())
        return not is_passed_on and _is_address(name)

    def _check(
        self, address: str, host: bytes, origin: bytes | None, forwarded: str | None
    ) -> Error | None:
        # The real host counts even if a proxy is trusted: a web page that reaches the server by
        # DNS rebinding comes from the user's machine, where a trusted proxy may run as well, and
        # it can set any header but Host.
        name = host.decode("latin-1").lower()
        names = [name] if forwarded is None else [name, forwarded.lower()]
        for named in names:
            if not self._allows_host(named, address):
                shown = named[:_MAX_SHOWN] or "none was named"
                return Error(
                    "FOREIGN_HOST", f"Foreign host: {shown}; allow it with --allow-host or hosts="
                )
        if origin is None:
            return None
        page = origin.decode("latin-1").lower()
        if any(self._allows_origin(page, named) for named in names):
            return None
        return Error(
            "FOREIGN_ORIGIN",
            f"Foreign origin: {page[:_MAX_SHOWN]}; allow it with --allow-origin or origins=",
        )

    def _allows_host(self, host: str, address: str) -> bool:
        on_loopback = is_loopback(address.removeprefix("::ffff:"))
        if "*" in self._hosts:
            return True
        name = host_name(host)
        if not (on_loopback or self._hosts):
            return not self._only_addresses or is_loopback(name) or _is_address(name)
        return name in self._hosts or (on_loopback and is_loopback(name))

    def _allows_origin(self, origin: str, host: str) -> bool:
        # The scheme is not compared, because a proxy may terminate TLS.
        same_host = host != "" and origin.partition("://")[2] == host
        return same_host or origin in self._origins or "*" in self._origins


def _is_address(name: str) -> bool:
    """Return whether a host is a literal address, which no attacker can make resolve to another."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
