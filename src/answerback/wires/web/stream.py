"""The answer to one POST: plain JSON, or events if there is something to say before it is ready.

Nothing is decided until something is said, so that a status other than 200 survives.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from .body import Send

Headers = list[tuple[bytes, bytes]]
_JSON = (b"content-type", b"application/json")
_EVENTS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


def event(frame: bytes, id: str | None = None) -> bytes:
    """One server-sent event; our frames have no line breaks."""
    if id is None:
        return b"event: message\ndata: %b\n\n" % frame
    return b"event: message\nid: %b\ndata: %b\n\n" % (id.encode(), frame)


class Stream:
    """The way back to the client of one request."""

    def __init__(self, send: Send, headers: Headers, ask: Asker | None = None) -> None:
        self._send = send
        self._headers = headers
        self._ask = ask
        self._loop = asyncio.get_running_loop()
        self._frames: deque[bytes] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._wake: asyncio.Event | None = None
        self._ended = False

    def send(self, frame: bytes) -> None:
        """May be called from any thread: the frame is kept here, and the loop told of it."""
        self._frames.append(frame)
        self._loop.call_soon_threadsafe(self._start)

    async def ask(self, method: str, params: Any) -> msgspec.Raw:
        if self._ask is None:
            raise RuntimeError("nobody can be asked on this wire")
        return await self._ask(self, method, params)

    def begin(self) -> None:
        """Answer with events from now on, so that the client sees that we are there."""
        self._start()

    async def finish(self, frame: bytes, status: int) -> None:
        """Send the answer: in the events if they have begun, by itself if nothing was said."""
        if self._writer is None and not self._frames:
            await self._send_alone(frame, status)
            return
        self._frames.append(frame)
        self._ended = True
        self._start()
        assert self._writer is not None
        await self._writer

    async def _send_alone(self, frame: bytes, status: int) -> None:
        headers = [*self._headers, _JSON, (b"content-length", b"%d" % len(frame))]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": frame})

    def _start(self) -> None:
        if self._writer is None:
            self._wake = asyncio.Event()
            self._writer = self._loop.create_task(self._write())
        assert self._wake is not None
        self._wake.set()

    async def _write(self) -> None:
        assert self._wake is not None
        headers = [*self._headers, *_EVENTS]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._frames:
                await self._write_one(event(self._frames.popleft()))
            if self._ended:
                break
        await self._send({"type": "http.response.body", "body": b""})

    async def _write_one(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


Asker = Callable[[Stream, str, Any], Awaitable[msgspec.Raw]]
