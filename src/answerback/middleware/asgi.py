"""ASGI: for any Starlette or FastAPI app whose responses are envelopes or MCP results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .checker import Clock
from .http_checker import MOST_BYTES, PAGES, Bodies, Sent

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]


class ValidReplies:
    """Lets no invalid reply out: `app.add_middleware(ValidReplies)`.

    Every response below *only* is taken for a reply, but for those below *skip*. One that
    is none is answered with status 500 in its place; errors of the framework's own pass.
    Put it inside whatever compresses.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        dialect: Dialect | None = None,
        records: Records | None = None,
        only: Sequence[str] = ("/",),
        skip: Sequence[str] = PAGES,
    ) -> None:
        self.app = app
        self._bodies = Bodies(dialect, records, only, skip)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._bodies.is_reply_to(scope["method"], scope["path"]):
            await self.app(scope, receive, _Response(self._bodies, scope["path"], send).send)
        else:
            await self.app(scope, receive, send)


class _Response:
    """Holds a response back until all of it is there."""

    def __init__(self, bodies: Bodies, path: str, send: Send) -> None:
        self._bodies = bodies
        self._path = path
        self._send = send
        self._clock = Clock()
        self._start: Message | None = None
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._holds(message):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            await self._take(self._start, message)
        else:
            # A file that the server itself is to read, or what else there may be: no body of ours.
            start, self._start = self._start, None
            if start is not None:
                await self._send(start)
            await self._send(message)

    def _holds(self, start: Message) -> bool:
        return self._bodies.is_one(start["status"], _media_type(start))

    async def _take(self, start: Message, message: Message) -> None:
        self._body += message.get("body", b"")
        more = message.get("more_body", False)
        if more and len(self._body) <= MOST_BYTES:
            return
        self._start = None
        body = bytes(self._body)
        if more:  # Too long to be held: it is let through as it is.
            await self._send(start)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            return
        sent = Sent(self._path, "asgi", start["status"], _media_type(start), body)
        judged = self._bodies.judge(sent, self._clock)
        if judged.body is not None:
            start = {**start, "status": judged.status, "headers": _headers(start, judged.body)}
            body = judged.body
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _media_type(start: Message) -> str:
    headers = start.get("headers", ())
    found = next((value for name, value in headers if name.lower() == b"content-type"), b"")
    return str(found, "latin-1").lower()


def _headers(start: Message, body: bytes) -> list[tuple[bytes, bytes]]:
    """Those of another body say nothing about this one."""
    about_body = (b"content-type", b"content-length", b"content-encoding", b"etag")
    kept = [
        (name, value) for name, value in start.get("headers", ()) if name.lower() not in about_body
    ]
    return [
        *kept,
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
