"""Tokens in requests, and challenges in responses (RFC 6750)."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..core.authentication import Challenge, Credentials, Unauthorized

MAX_TOKEN = 16 * 1024
"""The maximum size of a token, in bytes; a longer one is refused unread."""
# The characters of `token68` in RFC 9110.
_CREDENTIALS = re.compile(rb"([A-Za-z-]+) +([A-Za-z0-9._~+/-]+=*) *")
_IN_QUERY = ("access_token", "api_key")


def header_values(credentials: Credentials, name: bytes) -> list[bytes]:
    """Return a header's values, one for each occurrence."""
    return [value for key, value in credentials.headers if key == name]


def refuse_query(credentials: Credentials) -> None:
    """Raise Unauthorized for a token in the query, which logs and browser histories keep."""
    if not credentials.query:
        return
    from urllib.parse import parse_qsl

    try:
        names = [name.lower() for name, _ in parse_qsl(credentials.query.decode("latin-1"), True)]
    except ValueError:
        names = []
    if any(name in _IN_QUERY for name in names):
        raise invalid_request("a token in the query is refused; send it in the header")


def bearer_token(credentials: Credentials, schemes: Collection[bytes]) -> bytes | None:
    """Return the token in the `Authorization` header; None if there is no such header.

    Raises Unauthorized if there are two, or if it has no token with one of the lower-case
    *schemes*.
    """
    refuse_query(credentials)
    values = header_values(credentials, b"authorization")
    if not values:
        return None
    if len(values) > 1:
        raise invalid_request("there are two Authorization headers")
    value = values[0]
    if len(value) > MAX_TOKEN:
        raise invalid_token(f"the token is longer than {MAX_TOKEN} bytes")
    found = _CREDENTIALS.fullmatch(value)
    if found is None or found[1].lower() not in schemes:
        raise invalid_token("the Authorization header should be: Bearer TOKEN")
    return found[2]


def invalid_token(reason: str) -> Unauthorized:
    """Return the error for a bad token; *reason* must not contain any part of it."""
    return Unauthorized(Challenge(error="invalid_token", description=reason))


def invalid_request(reason: str) -> Unauthorized:
    return Unauthorized(Challenge(status=400, error="invalid_request", description=reason))
