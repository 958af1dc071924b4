"""Reads a request's body, up to a limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from ...reply import Reply, failure

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = Mapping[bytes, bytes]

_DRAIN = 64 * 1024 * 1024


class Gone(Exception):
    """The caller went away before the body was whole."""


async def read_body(receive: Receive, headers: Headers, limit: int) -> bytes | Reply[Any]:
    """The body, or the reply to one that is too large."""
    message = await receive()
    if not message.get("more_body") and message["type"] == "http.request":
        body: bytes = message.get("body", b"")
        return body if len(body) <= limit else _too_large(limit)
    if _declared(headers) > limit and b"expect" in headers:
        return _too_large(limit)  # The caller waits for a go-ahead and can read this at once.
    return await _gather(message, receive, limit)


async def _gather(message: Message, receive: Receive, limit: int) -> bytes | Reply[Any]:
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] != "http.request":
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size <= limit:
            parts.append(part)
        elif size > limit + _DRAIN:
            return _too_large(limit)
        if not message.get("more_body"):
            return b"".join(parts) if size <= limit else _too_large(limit)
        # Past the limit it is still read, and dropped: one who is sending does not read yet.
        message = await receive()


def _declared(headers: Headers) -> int:
    length = headers.get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


def _too_large(limit: int) -> Reply[Any]:
    return failure(
        f"Body larger than {limit} bytes",
        code="TOO_LARGE",
        hint="send less, or start the server with a larger --max-body",
    )
