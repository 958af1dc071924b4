"""One HTTP request: what it says, its body up to a limit, and the way to answer it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias

from ...reply import Reply, failure

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = Mapping[bytes, bytes]
Pairs: TypeAlias = tuple[tuple[bytes, bytes], ...]

DIRECT = "answerback.direct"
"""Where a scope has the server's `Direct`, if the server is ours."""
IN_JSON: Pairs = ((b"content-type", b"application/json"),)
_DRAIN = 64 * 1024 * 1024


class Direct(Protocol):
    """The short way to the line: ASGI goes through several messages, and waits for each."""

    def body(self) -> bytes | None:
        """The body, if it is whole already."""

    def answer(self, head: bytes, body: bytes) -> bool:
        """Write an answer whose length is not in its head yet; False if that must wait."""

    def is_gone(self) -> bool:
        """Whether nobody is at the other end any more."""


class Gone(Exception):
    """The caller went away before the body was whole."""


class Incoming:
    __slots__ = ("_direct", "headers", "method", "receive", "scope", "send")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.headers = headers_of(scope)
        # Taken out, because it leads back to the scope: a circle would wait for the collector.
        self._direct: Direct | None = scope.pop(DIRECT, None)

    @property
    def caller(self) -> str:
        """Where it comes from, for the records."""
        client = self.scope.get("client")
        return "" if client is None else str(client[0])

    async def body(self, limit: int) -> bytes | Reply[Any]:
        """The body, or the reply to one that cannot be had; raises Gone."""
        if self._direct is not None and (whole := self._direct.body()) is not None:
            return whole if len(whole) <= limit else _too_large(limit)
        if b"expect" in self.headers and _declared(self.headers) > limit:
            return _too_large(limit)  # The caller waits for a go-ahead and can read this at once.
        message = await self.receive()
        if message.get("more_body") or message["type"] != "http.request":
            return await _gather(message, self.receive, limit)
        body: bytes = message.get("body", b"")
        if not body and _declared(self.headers):
            return failure(
                "The body that was announced did not arrive; send it without an Upgrade header",
                code="INVALID_INPUT",
            )
        return body if len(body) <= limit else _too_large(limit)

    def is_gone(self) -> bool:
        """Whether the caller has left, as far as the server tells."""
        return self._direct is not None and self._direct.is_gone()

    async def respond(self, status: int, headers: Pairs, body: bytes) -> None:
        """Answer; *headers* are without the length."""
        if self._direct is not None and status != 204:
            usual = status == 200 and headers is IN_JSON
            if self._direct.answer(_USUAL if usual else _head(status, headers), body):
                return
        # With 204 there can be neither a body nor a length.
        length = () if status == 204 else ((b"content-length", b"%d" % len(body)),)
        start = {"type": "http.response.start", "status": status, "headers": [*headers, *length]}
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})

    async def leave(self) -> None:
        """Nobody is there any more; but what stands between us and the server wants an answer."""
        with suppress(OSError):  # Some servers raise it, as ASGI lets them.
            await self.respond(204, (), b"")


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


@lru_cache(64)
def _head(status: int, headers: Pairs) -> bytes:
    """The first lines of an answer; few differ."""
    if any(b"\r" in text or b"\n" in text for header in headers for text in header):
        raise ValueError("a header cannot have more than one line")
    line = b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
    return line + b"".join(b"%b: %b\r\n" % header for header in headers)


_USUAL = _head(200, IN_JSON)
