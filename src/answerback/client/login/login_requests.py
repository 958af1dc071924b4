"""The HTTP requests of a login: for metadata, registrations and tokens. All of them go through
`send`, which allows https or this machine, bounds time and size, and follows few redirects."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from ...auth.urls import is_loopback_url, is_secure
from ...errors import needs_extra
from ..faults import LoginError

with needs_extra("client"):
    import httpx2

_SECONDS = 15.0
"""Seconds for a whole request."""
_MAX_DOCUMENT = 256 * 1024
"""The most bytes of a document."""
_REDIRECTS = 3
_MOVED = frozenset({301, 302, 303, 307, 308})


class LoginResponse(msgspec.Struct, frozen=True):
    """The status and the JSON object of a response; the object is empty if there was none."""

    status: int
    document: dict[str, Any]

    @property
    def error(self) -> str:
        """The error code of OAuth, such as `invalid_grant`."""
        return str(self.document.get("error") or "")

    @property
    def reason(self) -> str:
        """The error of OAuth with its description, or the status."""
        said = " ".join(str(self.document.get("error_description") or "").split())[:300]
        parts = [self.error, said]
        return ": ".join(each for each in parts if each) or f"HTTP status {self.status}"


async def send(
    method: str,
    url: str,
    *,
    near: int,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    json: Mapping[str, Any] | None = None,
) -> LoginResponse:
    """Send one request; raises LoginError.

    *near* is the nearest network that the request may go to, as `nearness` tells it: a server
    on the internet must not make this machine ask addresses that only this machine can reach.
    A GET is redirected at most three times; a POST never, because it has secrets.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            for _ in range(_REDIRECTS + 1):
                await _check(url, near)
                status, found, body = await _exchange(method, url, headers, form, json)
                if method != "GET" or status not in _MOVED or "location" not in found:
                    return LoginResponse(status, _document(body))
                url = urljoin(url, found["location"])
    except TimeoutError:
        raise LoginError(f"{url} did not answer within {_SECONDS:g} seconds") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
        raise LoginError(f"{url} cannot be read: {str(exc) or type(exc).__name__}") from None
    raise LoginError(f"{url} is redirected too often")


async def _exchange(
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    form: Mapping[str, str] | None,
    json: Mapping[str, Any] | None,
) -> tuple[int, Any, bytes]:
    # Loading the certificates takes long, and plain HTTP needs none.
    tls: Any = False
    if urlsplit(url).scheme == "https":
        tls = await asyncio.to_thread(httpx2.create_ssl_context)
    async with (
        # A proxy of the environment is not for this machine itself.
        httpx2.AsyncClient(verify=tls, trust_env=not is_loopback_url(url)) as client,
        client.stream(
            method,
            url,
            data=form,
            json=json,
            headers={"accept": "application/json", **(headers or {})},
        ) as response,
    ):
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_DOCUMENT:
                raise LoginError(f"{url} is larger than {_MAX_DOCUMENT} bytes")
        return response.status_code, response.headers, body


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


async def nearness(url: str) -> int:
    """How near the host of a URL is: 0 is this machine, 1 a private network, 2 the internet."""
    host = urlsplit(url).hostname or ""
    if is_loopback_url(url):
        return 0
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        # A proxy may know the name; a direct connection will fail anyway.
        return 2
    return min((_nearness_of(str(each[4][0])) for each in found), default=2)


def _nearness_of(address: str) -> int:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_loopback or ip.is_unspecified:
        return 0
    return 2 if ip.is_global else 1


async def _check(url: str, near: int) -> None:
    if not is_secure(url):
        raise LoginError(f"{url!r} should be an https URL; http is for this machine alone")
    if near > 0 and await nearness(url) < near:
        raise LoginError(f"{url!r} leads into a private network, which the server is not part of")
