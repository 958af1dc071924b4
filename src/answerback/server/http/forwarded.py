"""Reads trusted proxies' headers: `X-Forwarded-*` and `Forwarded` (RFC 7239).

A proxy passes on what it knows about the client: its address, the scheme, the host and the path
prefix that it removed. Anyone can send these headers, so they count only if the connection comes
from a proxy in `--trust-proxy`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

import msgspec

from .server_options import Network

_MAX_HEADER = 2048
"""A longer header is ignored."""
_PREFIX = re.compile(r"(?:/[\w.~%-]+)+", re.ASCII)
# One `name=value` of a Forwarded header, and what follows it: ";", "," or the end.
_PAIR = re.compile(r'\s*([\w-]+)=("(?:[^"\\]|\\.)*"|[^\s",;]*)\s*([;,]|$)', re.ASCII)
_NODE = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\w+)?|([0-9.]+)(?::\w+)?|([0-9a-fA-F:.]+)")

Address: TypeAlias = IPv4Address | IPv6Address


class Forwarded(msgspec.Struct, frozen=True):
    """Trusted proxies' claims about a request; None for what they do not say."""

    client: str | None = None
    scheme: str | None = None
    host: str | None = None
    prefix: str = ""


class TrustedProxies:
    """Says which addresses are trusted proxies, and reads their headers."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.trusts = lru_cache(256)(self._trusts)

    def read(self, headers: Mapping[bytes, bytes]) -> Forwarded:
        """Return the client of a request from a trusted proxy.

        If both kinds of headers are there, a value counts only if they agree: a proxy that sets
        one kind may pass the other kind on as the client sent it.
        """
        plain = self._read_plain(headers)
        standard = self._read_standard(_text(headers, b"forwarded"))
        return Forwarded(
            _agreed(plain.client, standard.client),
            _agreed(plain.scheme, standard.scheme),
            _agreed(plain.host, standard.host),
            plain.prefix,
        )

    def _read_plain(self, headers: Mapping[bytes, bytes]) -> Forwarded:
        client, hops = self._client(_split(_text(headers, b"x-forwarded-for")))
        prefix = _pick(_split(_text(headers, b"x-forwarded-prefix")), hops).rstrip("/")
        return Forwarded(
            client,
            _scheme(_pick(_split(_text(headers, b"x-forwarded-proto")), hops)),
            _pick(_split(_text(headers, b"x-forwarded-host")), hops) or None,
            prefix if _PREFIX.fullmatch(prefix) else "",
        )

    def _read_standard(self, header: str) -> Forwarded:
        elements = list(_elements(header))
        client, hops = self._client([element.get("for", "") for element in elements])
        if not elements:
            return Forwarded()
        element = elements[-min(hops, len(elements))]
        return Forwarded(client, _scheme(element.get("proto", "")), element.get("host") or None)

    def _client(self, nodes: list[str]) -> tuple[str | None, int]:
        """Return the last address that is not a trusted proxy's, and the number of proxies after.

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
        """Return whether the connection from the address *peer* comes from a trusted proxy."""
        address = _address(peer)
        return address is not None and any(address in network for network in self._networks)


def _address(node: str) -> Address | None:
    """Return the address of a node, which may have a port; None if it has no address."""
    found = _NODE.fullmatch(node)
    if found is None:
        return None
    try:
        address = ip_address(found[1] or found[2] or found[3])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _elements(header: str) -> Iterator[dict[str, str]]:
    """Yield the elements of a Forwarded header, one for each proxy; none if it is malformed."""
    elements: list[dict[str, str]] = [{}]
    at = 0
    while at < len(header):
        found = _PAIR.match(header, at)
        if found is None:
            return
        name, value, separator = found.groups()
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        elements[-1][name.lower()] = value
        if separator == ",":
            elements.append({})
        at = found.end()
    yield from elements if header else ()


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    value = headers.get(name, b"")
    return value.decode("latin-1") if len(value) <= _MAX_HEADER else ""


def _split(header: str) -> list[str]:
    return [value.strip() for value in header.split(",")] if header else []


def _pick(values: list[str], hops: int) -> str:
    """Return the value that the first of *hops* trusted proxies wrote; each adds or keeps one."""
    return values[-min(hops, len(values))] if values else ""


def _scheme(value: str) -> str | None:
    return value.lower() if value.lower() in ("http", "https") else None


def _agreed(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one or other
    return one if one == other else None
