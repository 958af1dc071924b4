"""Where a request comes from: the `Host` and `Origin` headers, and headers from trusted proxies.

A browser lets any web page send requests to a server on the user's own machine, as in DNS
rebinding attacks. The first two headers show when a request comes from such a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import msgspec

from ...core.reply import Error, Reply, failure
from .server_options import Network, WebOptions, host_name, is_loopback

FORWARDED_HOST = "answerback.forwarded_host"
"""Scope key for the host that the client requested from a trusted proxy."""
_PROXY_HEADERS = frozenset(
    b"forwarded via x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip".split()
)
_MAX_SHOWN = 100


def is_local(scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> bool:
    """Return whether the request came from a client on this machine, not through a proxy."""
    client = scope.get("client")
    if client is None or not _PROXY_HEADERS.isdisjoint(headers):
        return False
    return is_loopback(client[0].removeprefix("::ffff:"))


class Guard:
    """Checks each request's host and origin against the allowed ones."""

    def __init__(self, options: WebOptions) -> None:
        self._hosts = frozenset(options.hosts)
        self._only_addresses = options.only_addresses
        self._origins = frozenset(options.origins)
        # Most requests have the same headers.
        self._find_error = lru_cache(64)(self._check)

    def refuse(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Reply[Any] | None:
        """Return a refusal if the request has a foreign host or origin, otherwise None."""
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
        """Return whether a refused request for a health page may come from a load balancer.

        Load balancers and Kubernetes address the server by its IP, which differs from machine to
        machine.
        """
        is_passed_on = b"origin" in headers or scope.get(FORWARDED_HOST) is not None
        name = host_name(headers.get(b"host", b"").decode("latin-1").lower())
        return not is_passed_on and _is_address(name)

    def _check(
        self, address: str, host: bytes, origin: bytes | None, forwarded: str | None
    ) -> Error | None:
        # The Host header is checked even if a proxy is trusted. A web page that uses DNS rebinding
        # sends requests from the user's machine, where a trusted proxy may be running too, and it
        # can set any header except Host.
        name = host.decode("latin-1").lower()
        names = [name] if forwarded is None else [name, forwarded.lower()]
        for named in names:
            if not self._allows_host(named, address):
                shown = named[:_MAX_SHOWN] or "(none)"
                return Error(
                    "FOREIGN_HOST", f"Foreign host: {shown}; allow it with --allow-host or hosts="
                )
        if origin is None:
            return None
        page = origin.decode("latin-1").lower()
        # The scheme is not compared, because a proxy may terminate TLS.
        page_host = page.partition("://")[2]
        is_same_host = page_host != "" and page_host in names
        if is_same_host or page in self._origins or "*" in self._origins:
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


def _is_address(name: str) -> bool:
    """Return whether a host is a literal address, which DNS rebinding cannot redirect."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


_MAX_HEADER = 2048
"""Longer headers are ignored."""
_PREFIX = re.compile(r"(?:/[\w.~%-]+)+", re.ASCII)
# A `name=value` pair in a Forwarded header, and what follows it: ";", "," or the end.
_PAIR = re.compile(r'\s*([\w-]+)=("(?:[^"\\]|\\.)*"|[^\s",;]*)\s*([;,]|$)', re.ASCII)
_NODE = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\w+)?|([0-9.]+)(?::\w+)?|([0-9a-fA-F:.]+)")


class Forwarded(msgspec.Struct, frozen=True):
    """A request as described by trusted proxies; None for anything they leave out."""

    client: str | None = None
    scheme: str | None = None
    host: str | None = None
    prefix: str = ""


class TrustedProxies:
    """Recognises trusted proxies, and reads their headers."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.trusts = lru_cache(256)(self._trusts)

    def read(self, headers: Mapping[bytes, bytes]) -> Forwarded:
        """Return what a trusted proxy's headers say about a request.

        If both kinds of headers are present, a value is used only if they agree: a proxy that sets
        one kind may pass on the client's headers of the other kind.
        """
        client, hops = self._client(_split(_text(headers, b"x-forwarded-for")))
        prefix = _pick(_split(_text(headers, b"x-forwarded-prefix")), hops).rstrip("/")
        plain = Forwarded(
            client,
            _scheme(_pick(_split(_text(headers, b"x-forwarded-proto")), hops)),
            _pick(_split(_text(headers, b"x-forwarded-host")), hops) or None,
            prefix if _PREFIX.fullmatch(prefix) else "",
        )
        standard = Forwarded()
        if elements := _elements(_text(headers, b"forwarded")):
            client, hops = self._client([element.get("for", "") for element in elements])
            element = elements[-min(hops, len(elements))]
            scheme = _scheme(element.get("proto", ""))
            standard = Forwarded(client, scheme, element.get("host") or None)
        return Forwarded(
            _agreed(plain.client, standard.client),
            _agreed(plain.scheme, standard.scheme),
            _agreed(plain.host, standard.host),
            plain.prefix,
        )

    def _client(self, nodes: list[str]) -> tuple[str | None, int]:
        """Return the last address that is not a trusted proxy's, and how many proxies follow it.

        Everything before that address was sent by the client, and may be forged.
        """
        client, hops = None, 1
        for node in reversed(nodes):
            address = _address(node)
            if address is None:
                break
            client = str(address)
            if not self.trusts(client):
                break
            hops += 1
        return client, hops

    def _trusts(self, peer: str) -> bool:
        """Return whether *peer*, the other end of a connection, is a trusted proxy."""
        address = _address(peer)
        return address is not None and any(address in network for network in self._networks)


def _address(node: str) -> IPv4Address | IPv6Address | None:
    """Return a node's address without its port; None if it has no address."""
    found = _NODE.fullmatch(node)
    if found is None:
        return None
    try:
        address = ip_address(found[1] or found[2] or found[3])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _elements(header: str) -> list[dict[str, str]]:
    """Return the elements of a Forwarded header, one per proxy; empty if it is malformed."""
    elements: list[dict[str, str]] = [{}]
    at = 0
    while at < len(header):
        found = _PAIR.match(header, at)
        if found is None:
            return []
        name, value, separator = found.groups()
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        elements[-1][name.lower()] = value
        if separator == ",":
            elements.append({})
        at = found.end()
    return elements if header else []


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    value = headers.get(name, b"")
    return value.decode("latin-1") if len(value) <= _MAX_HEADER else ""


def _split(header: str) -> list[str]:
    return [value.strip() for value in header.split(",")] if header else []


def _pick(values: list[str], hops: int) -> str:
    """Return the value from the first of *hops* trusted proxies; each adds a value or keeps one."""
    return values[-min(hops, len(values))] if values else ""


def _scheme(value: str) -> str | None:
    return value.lower() if value.lower() in ("http", "https") else None


def _agreed(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one or other
    return one if one == other else None
