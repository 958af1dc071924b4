"""HttpReply: a reply for HTTP and CGI, with its status, body and headers."""

from __future__ import annotations

from math import ceil
from typing import Any

import msgspec

from ..core.json_value import is_number
from ..core.reply import Reply

JSON = "application/json"
PROBLEM = "application/problem+json"
ERROR_CODE = "X-Error-Code"
"""The header with an error's code."""
ERROR_HINT = "X-Error-Hint"
"""The header with an error's hint, for which the rest dialect's body has no member."""
RETRY_AFTER = "Retry-After"
"""The header with the number of seconds to wait before trying again."""
_MAX_HINT = 500
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class HttpReply(msgspec.Struct, frozen=True):
    """A reply written in a dialect, for an HTTP-like wire."""

    status: int
    body: bytes
    media_type: str
    headers: tuple[tuple[str, str], ...] = ()
    """The headers other than `Content-Type`, which is in `media_type`."""

    def header(self, name: str) -> str | None:
        """Return the value of a header; its name is case-insensitive."""
        name = name.lower()
        return next((value for key, value in self.headers if key.lower() == name), None)


def json_reply(reply: Reply[Any], body: bytes, media_type: str = JSON) -> HttpReply:
    """Add the reply's status and error headers to *body*; they are the same in all dialects."""
    if reply.error is None:
        return HttpReply(200, body, media_type)
    headers: tuple[tuple[str, str], ...] = ((ERROR_CODE, header_token(reply.error.code)),)
    details = reply.error.details
    seconds = details.get("retry_after") if isinstance(details, dict) else None
    if is_number(seconds) and 0 <= seconds < 1e9:
        # The header must be a whole number.
        headers += ((RETRY_AFTER, str(ceil(seconds))),)
    return HttpReply(reply.error.row.status, body, media_type, headers)


def header_token(text: str) -> str:
    """Return *text* as an HTTP token, so that it cannot start another header."""
    # No code in the table has a hyphen, so a changed code never equals one of them.
    return "".join(char if char in _TOKEN else "-" for char in text) or "-"


def header_text(text: str) -> str:
    """Return *text* for a header: printable ASCII, the rest as %XX, truncated if too long."""
    parts: list[str] = []
    left = _MAX_HINT
    for char in text.strip()[:_MAX_HINT]:
        is_plain = " " <= char <= "~" and char != "%"
        octets = char.encode("utf-8", "replace")
        part = char if is_plain else "".join(f"%{octet:02X}" for octet in octets)
        left -= len(part)
        if left < 0:
            break
        parts.append(part)
    return "".join(parts).rstrip()


def is_header_token(text: str) -> bool:
    return bool(text) and _TOKEN.issuperset(text)
