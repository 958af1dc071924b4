"""ASGI middleware for Starlette and FastAPI apps whose responses are envelopes or MCP results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from .checker import MAX_CHECKED_BYTES, AppResponse, CallTimer, HttpMiddleware

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]


class ValidReplies(HttpMiddleware[ASGIApp]):
    """Middleware that refuses invalid replies: `app.add_middleware(ValidReplies)`."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.applies_to(scope["method"], scope["path"]):
            held = _HeldResponse(self, scope["path"], send)
            await self.app(scope, receive, held.send)
        else:
            await self.app(scope, receive, send)


class _HeldResponse:
    """A response, buffered until its body is complete, then checked and sent."""

    def __init__(self, checker: ValidReplies, path: str, send: Send) -> None:
        self._checker = checker
        self._path = path
        self._send = send
        self._timer = CallTimer()
        self._start: Message | None = None
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        is_start = message["type"] == "http.response.start"
        if is_start and self._checker.has_checkable_body(message["status"], _media_type(message)):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            await self._add_body(self._start, message)
        else:
            # Another message, such as `http.response.pathsend`: there is no body to check.
            start, self._start = self._start, None
            if start is not None:
                await self._send(start)
            await self._send(message)

    async def _add_body(self, start: Message, message: Message) -> None:
        self._body += message.get("body", b"")
        more = message.get("more_body", False)
        if more and len(self._body) <= MAX_CHECKED_BYTES:
            return
        self._start = None
        body = bytes(self._body)
        if len(body) > MAX_CHECKED_BYTES:  # Too large to buffer: send it unchecked.
            await self._send(start)
            await self._send({"type": "http.response.body", "body": body, "more_body": more})
            return
        status, media_type = start["status"], _media_type(start)
        response = AppResponse(self._path, "asgi", status, media_type, body, self._timer)
        checked = self._checker.check(response)
        if checked.body is not None:
            # Headers that describe the app's body are replaced.
            about_body = (b"content-type", b"content-length", b"content-encoding", b"etag")
            headers = [
                (name, value)
                for name, value in start.get("headers", ())
                if name.lower() not in about_body
            ]
            headers.append((b"content-type", b"application/json"))
            headers.append((b"content-length", str(len(checked.body)).encode()))
            start = {**start, "status": checked.status, "headers": headers}
            body = checked.body
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _media_type(start: Message) -> str:
    headers = start.get("headers", ())
    found = next((value for name, value in headers if name.lower() == b"content-type"), b"")
    return str(found, "latin-1").lower()
