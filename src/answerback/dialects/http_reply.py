"""A reply as it goes over HTTP and its like."""

from __future__ import annotations

from typing import Any

import msgspec

from ..reply import Reply

JSON = "application/json"
ERROR_CODE = "X-Error-Code"
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class HttpReply(msgspec.Struct, frozen=True):
    """A reply as it goes over HTTP-like wires."""

    status: int
    body: bytes
    media_type: str
    headers: tuple[tuple[str, str], ...] = ()

    def header(self, name: str) -> str | None:
        """The header of that name, however it is spelt."""
        name = name.lower()
        return next((value for key, value in self.headers if key.lower() == name), None)


def in_json(reply: Reply[Any], body: bytes, media_type: str = JSON) -> HttpReply:
    """*body* with the status and the headers of the reply, which no dialect changes."""
    if reply.error is None:
        return HttpReply(200, body, media_type)
    code = (ERROR_CODE, token(reply.error.code))
    return HttpReply(reply.error.row.status, body, media_type, (code,))


def token(text: str) -> str:
    """*text* as an HTTP token, which no header can be broken with."""
    # A hyphen, because no code of the table has one: a mended code never becomes one of them.
    return "".join(char if char in _TOKEN else "-" for char in text) or "-"


def is_token(text: str) -> bool:
    return bool(text) and _TOKEN.issuperset(text)
