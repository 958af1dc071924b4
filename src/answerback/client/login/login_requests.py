"""A login's HTTP requests: for metadata, registrations and tokens. All of them go through `send`,
which only allows https or this machine, limits time and size, and follows few redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urljoin

import msgspec

from ...auth.bearer import is_loopback_url
from ...core.json_value import JsonObject
from ...core.secrets import mask_url
from ...http1.http_connection import HttpFailure
from ...http1.http_pool import BodyTooLarge, fetch
from ..faults import LoginError
from .network_zones import check_zone

_SECONDS = 15.0
"""Seconds for a whole request."""
_MAX_DOCUMENT = 256 * 1024
"""The maximum size of a document, in bytes."""
_REDIRECTS = 3
_MOVED = frozenset({301, 302, 303, 307, 308})


class LoginResponse(msgspec.Struct, frozen=True):
    """A response's status and JSON object; the object is empty if there was none."""

    status: int
    document: dict[str, Any]

    @property
    def error(self) -> str:
        """The OAuth error code, such as `invalid_grant`."""
        return str(self.document.get("error") or "")

    @property
    def reason(self) -> str:
        """The OAuth error with its description, or the status."""
        said = " ".join(str(self.document.get("error_description") or "").split())[:300]
        parts = [self.error, said]
        return ": ".join(each for each in parts if each) or f"HTTP status {self.status}"


async def send(
    method: str,
    url: str,
    *,
    zone: int,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    json: Mapping[str, Any] | None = None,
) -> LoginResponse:
    """Send one request; raises LoginError.

    *zone* is the nearest network zone that the request may go to: a server on the internet must
    not make this machine send requests to addresses that only this machine can reach.
    A GET is redirected at most three times; a POST never, because it has secrets.
    """
    content, sent = _content(form, json)
    sent |= {"accept": "application/json", **(headers or {})}
    try:
        async with asyncio.timeout(_SECONDS):
            for _ in range(_REDIRECTS + 1):
                await check_zone(url, zone)
                # The environment's proxies are not for this machine itself.
                proxies = not is_loopback_url(url)
                found = await fetch(
                    method, url, sent, content, limit=_MAX_DOCUMENT, uses_proxies=proxies
                )
                location = found.headers.get("location", "")
                if method != "GET" or found.status not in _MOVED or not location:
                    return LoginResponse(found.status, _document(found.body))
                url = urljoin(url, location)
    except TimeoutError:
        raise LoginError(f"{mask_url(url)} did not answer within {_SECONDS:g} seconds") from None
    except BodyTooLarge:
        raise LoginError(f"{mask_url(url)} is larger than {_MAX_DOCUMENT} bytes") from None
    except HttpFailure as exc:
        raise LoginError(f"{mask_url(url)} cannot be read: {exc}") from None
    raise LoginError(f"{mask_url(url)} is redirected too often")


def _content(
    form: Mapping[str, str] | None, json: Mapping[str, Any] | None
) -> tuple[bytes | None, dict[str, str]]:
    """Return a request's body, and the header with its type."""
    if form is not None:
        return urlencode(form).encode(), {"content-type": "application/x-www-form-urlencoded"}
    if json is not None:
        return msgspec.json.encode(json), {"content-type": "application/json"}
    return None, {}


def _document(body: bytes) -> JsonObject:
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
