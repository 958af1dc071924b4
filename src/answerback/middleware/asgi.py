"""ASGI middleware for Starlette and FastAPI apps whose responses are envelopes or MCP results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .checker import CallTimer
from .http_checker import FASTAPI_PAGES, MAX_CHECKED_BYTES, AppResponse, BodyChecker

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]


class ValidReplies:
    """Middleware that refuses invalid replies: `app.add_middleware(ValidReplies)`.

    Every response whose path is below *only* and not below *skip* counts as a reply. An invalid
    one is replaced by an error with status 500; the framework's own errors (404) pass unchanged.
    Install it so that it sees responses before any middleware compresses them.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        dialect: Dialect | None = None,
        records: Records | None = None,
        only: Sequence[str] = ("/",),
        skip: Sequence[str] = FASTAPI_PAGES,
    ) -> None:
        self.app = app
        self._checker = BodyChecker(dialect, records, only, skip)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._checker.applies_to(scope["method"], scope["path"]):
            held = _HeldResponse(self._checker, scope["path"], send)
            await self.app(scope, receive, held.send)
        else:
            await self.app(scope, receive, send)


class _HeldResponse:
    """A response, buffered until its body is complete, then checked and sent."""

    def __init__(self, checker: BodyChecker, path: str, send: Send) -> None:
        self._checker = checker
        self._path = path
        self._send = send
        self._timer = CallTimer()
        self._start: Message | None = None
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._must_hold(message):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            await self._add_body(self._start, message)
        else:
            # Another message, such as `http.response.pathsend`: there is no body to check.
            start, self._start = self._start, None
            if start is not None:
                await self._send(start)
            await self._send(message)

    def _must_hold(self, start: Message) -> bool:
        return self._checker.has_checkable_body(start["status"], _media_type(start))

    async def _add_body(self, start: Message, message: Message) -> None:
        self._body += message.get("body", b"")
        more = message.get("more_body", False)
        if more and len(self._body) <= MAX_CHECKED_BYTES:
            return
        self._start = None
        body = bytes(self._body)
        if more:  # Too large to buffer: send it unchecked.
            await self._send(start)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            return
        response = AppResponse(self._path, "asgi", start["status"], _media_type(start), body)
        checked = self._checker.check(response, self._timer)
        if checked.body is not None:
            headers = _headers_for(checked.body, start)
            start = {**start, "status": checked.status, "headers": headers}
            body = checked.body
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _media_type(start: Message) -> str:
    headers = start.get("headers", ())
    found = next((value for name, value in headers if name.lower() == b"content-type"), b"")
    return str(found, "latin-1").lower()


def _headers_for(body: bytes, start: Message) -> list[tuple[bytes, bytes]]:
    """Return the app's headers for a new body, with those that describe the old one replaced."""
    about_body = (b"content-type", b"content-length", b"content-encoding", b"etag")
    kept = [
        (name, value) for name, value in start.get("headers", ()) if name.lower() not in about_body
    ]
    return [
        *kept,
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
