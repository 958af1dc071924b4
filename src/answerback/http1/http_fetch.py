"""One request with a small response, on its own connection."""

from __future__ import annotations

from collections.abc import Mapping
from ssl import SSLContext

import msgspec

from .http_errors import HttpFailure
from .http_pool import HttpPool


class BodyTooLarge(HttpFailure):
    """A response's body is larger than its reader allows."""


class Fetched(msgspec.Struct, frozen=True):
    """A whole response; its header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def fetch(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes | None = None,
    *,
    limit: int,
    uses_proxies: bool = True,
    tls: SSLContext | None = None,
) -> Fetched:
    """Send a request without following redirects.

    Raises HttpFailure; BodyTooLarge if the body has more than *limit* bytes. The caller limits
    the time. Header names are in lower case.
    """
    pool = HttpPool(uses_proxies=uses_proxies, tls=tls)
    try:
        response = await pool.send(method, url, headers, content)
        body = await response.read_up_to(limit + 1)
    finally:
        pool.close()
    if len(body) > limit:
        raise BodyTooLarge(f"the response has more than {limit} bytes")
    return Fetched(response.status_code, response.headers, body)
