"""One HTTP request over ASGI: its headers, its body up to a limit, and its response."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import Any, TypeAlias

from ...core.authentication import User
from ...core.reply import Reply, failure
from ...core.request_info import RequestHeaders, RequestInfo
from ...dialects import HttpReply
from ...dialects.status_and_headers import JSON
from ..http.routes import too_large

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = Mapping[bytes, bytes]
HeaderPairs: TypeAlias = tuple[tuple[bytes, bytes], ...]
Body: TypeAlias = bytes | tuple[bytes, ...]
"""A response body; a large one stays in pieces, because joining them would copy it."""

JSON_HEADERS: HeaderPairs = ((b"content-type", b"application/json"),)
# A client that is still sending is not reading yet, so read up to this much of a refused body.
_MAX_DISCARDED = 64 * 1024 * 1024
_CREDENTIALS = (b"authorization", b"x-api-key")
"""A tool that forwards its request's headers must not forward these."""
MAX_BODY_HINT = "send less, or start the server with a larger --max-body"


class FastPath:
    """Our own server's `send`, which can also read and write without ASGI messages.

    A layer that passes its own `send` instead still sees every message.
    """

    __slots__ = ()
    loop: asyncio.AbstractEventLoop

    def __call__(self, message: Message) -> Awaitable[None]:
        raise NotImplementedError

    def body(self) -> bytes | None:
        """Return the body, if all of it has arrived."""
        raise NotImplementedError

    def respond(self, head: bytes, body: Body) -> bool:
        """Write a response; *head* omits the length. Return False if the client must read first."""
        raise NotImplementedError

    def is_disconnected(self) -> bool:
        raise NotImplementedError


class ClientDisconnected(Exception):
    """The client disconnected before the body was complete."""


class HttpRequest:
    """An HTTP request, with methods to respond to it."""

    __slots__ = (
        "_fast_path",
        "accept",
        "caller",
        "content_type",
        "headers",
        "is_disconnected",
        "method",
        "path",
        "receive",
        "root",
        "scope",
        "send",
        "text",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.text = b""
        """The body of an MCP request."""
        self.method: str = scope["method"]
        path: str = scope["path"]
        self.root: str = scope.get("root_path", "")
        mounted = self.root and path.startswith(self.root + "/")
        path = path[len(self.root) :] if mounted else path
        # No route or tool ends with a slash. A redirect would lose the body of a POST.
        self.path = path[:-1] if path[-1:] == "/" and len(path) > 1 else path
        self.headers = headers = joined_headers(scope)
        self.accept = headers.get(b"accept", b"")
        self.content_type = headers.get(b"content-type", b"")
        client = scope.get("client")
        self.caller = "" if client is None else str(client[0])
        """The client's address, for the records."""
        fast_path = send if isinstance(send, FastPath) else None
        self._fast_path = fast_path
        self.is_disconnected = None if fast_path is None else fast_path.is_disconnected
        """Says whether the client has disconnected; None if the server cannot tell."""

    @property
    def query(self) -> bytes:
        query: bytes = self.scope.get("query_string", b"")
        return query

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that serves the request."""
        return asyncio.get_running_loop() if self._fast_path is None else self._fast_path.loop

    async def body(self, limit: int) -> bytes | Reply[Any]:
        """Return the body, or the reply that refuses it; raises ClientDisconnected."""
        if self._fast_path is not None and (body := self._fast_path.body()) is not None:
            return body if len(body) <= limit else too_large(limit, MAX_BODY_HINT)
        if b"expect" in self.headers and _declared_length(self.headers) > limit:
            # The client is waiting for "100 Continue", so it can read the refusal immediately.
            return too_large(limit, MAX_BODY_HINT)
        chunks: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self.receive()
            if message["type"] != "http.request":
                raise ClientDisconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size <= limit:
                chunks.append(chunk)
            elif size > limit + _MAX_DISCARDED:
                break
            more = message.get("more_body", False)
        if size > limit:
            return too_large(limit, MAX_BODY_HINT)
        if len(chunks) == 1 and not size and _declared_length(self.headers):
            return failure(
                "The declared body did not arrive; send it without an Upgrade header",
                code="INVALID_INPUT",
            )
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def respond(self, status: int, headers: HeaderPairs, body: Body) -> None:
        """Send the complete response; *headers* do not include the length."""
        if self._fast_path is not None and status != 204:
            is_ok_json = status == 200 and headers is JSON_HEADERS
            head = _OK_JSON if is_ok_json else _head(status, headers)
            if self._fast_path.respond(head, body):
                return
        body = body if isinstance(body, bytes) else b"".join(body)
        # A 204 must have neither a body nor a length.
        length = () if status == 204 else ((b"content-length", b"%d" % len(body)),)
        start = {"type": "http.response.start", "status": status, "headers": [*headers, *length]}
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})

    async def respond_with(self, reply: HttpReply) -> None:
        """Send a reply as its dialect wrote it."""
        if reply.media_type == JSON and not reply.headers:
            await self.respond(reply.status, JSON_HEADERS, reply.body)
            return
        headers = [(b"content-type", reply.media_type.encode("latin-1"))]
        headers += [(name.lower().encode(), value.encode()) for name, value in reply.headers]
        await self.respond(reply.status, tuple(headers), reply.body)

    @property
    def user(self) -> User | None:
        """The user from the app's `auth=`; users from other frameworks do not count."""
        found = self.scope.get("user")
        return found if isinstance(found, User) else None

    @property
    def expires(self) -> float | None:
        """When the request's token expires, in seconds since 1970; None if it does not."""
        return None if self.user is None else self.user.expires

    def describe_request(self, wire: str) -> RequestInfo:
        """Return the request's data for `ctx.request`."""
        return AsgiRequestInfo(wire, self.scope)

    async def end_after_disconnect(self) -> None:
        """End the response to a client that disconnected; middleware still expects one."""
        with suppress(OSError):  # ASGI allows a server to raise it here.
            await self.respond(204, (), b"")


def challenge_headers(challenge: str) -> HeaderPairs:
    """Return the headers for a JSON response that asks for a login; it must not be cached."""
    value = challenge.encode("latin-1", "replace")
    return (*JSON_HEADERS, (b"www-authenticate", value), (b"cache-control", b"no-store"))


def joined_headers(scope: Scope) -> Headers:
    """Return the headers by name; the values of a repeated header are joined."""
    pairs: list[tuple[bytes, bytes]] = scope["headers"]
    headers = dict(pairs)
    if len(headers) == len(pairs):
        return headers
    values: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: b", ".join(found) for name, found in values.items()}


def _declared_length(headers: Headers) -> int:
    length = headers.get(b"content-length", b"")
    # Python refuses to convert thousands of digits.
    return int(length[:20]) if length.isdigit() else 0


@lru_cache(64)
def _head(status: int, headers: HeaderPairs) -> bytes:
    """Return the status line and headers of a response; cached, because there are only a few."""
    if any(b"\r" in text or b"\n" in text for header in headers for text in header):
        raise ValueError("a header cannot have more than one line")
    line = b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
    return line + b"".join(b"%b: %b\r\n" % header for header in headers)


_OK_JSON = _head(200, JSON_HEADERS)


class AsgiRequestInfo(RequestInfo):
    """The request data in an ASGI scope."""

    _source: Mapping[str, Any]

    @cached_property
    def headers(self) -> RequestHeaders:
        """The headers, without the credentials checked by the app's `auth=`."""
        hidden = _CREDENTIALS if isinstance(self._source.get("user"), User) else ()
        return RequestHeaders(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self._source["headers"]
            if name not in hidden
        )

    @property
    def address(self) -> str | None:
        client = self._source.get("client")
        return None if client is None else str(client[0])

    @property
    def user(self) -> Any:
        """The `user` that middleware put in the scope, unless it says that it is anonymous.

        An empty name and False are not users.
        """
        user = self._source.get("user")
        return user if user and getattr(user, "is_authenticated", True) else None
