"""Reads a request: its headers, and its body up to a limit."""

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


def caller_of(scope: Scope) -> str:
    """Where a request comes from, for the records."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


class Gone(Exception):
    """The caller went away before the body was whole."""


def headers_of(scope: Scope) -> Headers:
    """The headers by name; what is said twice is joined, so that neither hides the other."""
    pairs: list[tuple[bytes, bytes]] = scope["headers"]
    headers = dict(pairs)
    if len(headers) == len(pairs):
        return headers
    values: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: b", ".join(said) for name, said in values.items()}


async def read_body(receive: Receive, headers: Headers, limit: int) -> bytes | Reply[Any]:
    """The body, or the reply to one that cannot be had."""
    if b"expect" in headers and _declared(headers) > limit:
        return _too_large(limit)  # The caller waits for a go-ahead and can read this at once.
    message = await receive()
    if message.get("more_body") or message["type"] != "http.request":
        return await _gather(message, receive, limit)
    body: bytes = message.get("body", b"")
    if not body and _declared(headers):
        return failure(
            "The body that was announced did not arrive; send it without an Upgrade header",
            code="INVALID_INPUT",
        )
    return body if len(body) <= limit else _too_large(limit)


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
    # Python refuses to read a number of thousands of digits.
    return int(length[:20]) if length.isdigit() else 0


def _too_large(limit: int) -> Reply[Any]:
    return failure(
        f"Body larger than {limit} bytes",
        code="TOO_LARGE",
        hint="send less, or start the server with a larger --max-body",
    )
