"""Server-sent events (SSE): a stream keeps frames and sends them to its clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

from .request import HttpRequest, Receive, Send

KEEP_ALIVE = 15.0
"""Seconds without an event before a comment is sent to keep the connection alive."""
MAX_UNREAD = 1024 * 1024
"""Maximum unread bytes on one stream; beyond that, notifications are dropped."""
YIELD_EVERY = 16
"""The number of events after which a writer lets the loop's other tasks run."""
RETRY_MS = 500
"""Milliseconds that a client waits before it resumes a stream whose connection was closed."""

_EVENTS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """The frames of one stream, in order. Any thread may append; the event loop sends.

    With an *id*, its events have ids, and a client that lost its connection can resume.
    Sent frames are kept only for such a client, up to a limit.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, id: str | None = None) -> None:
        self.id = id
        self.ended = False
        self.size = 0
        self._frames: deque[bytes] = deque()
        self._dropped = 0
        self._waking = False
        self._lock = threading.Lock()
        self._loop = loop
        self._subscribers: set[Subscriber] = set()

    @property
    def count(self) -> int:
        """The total number of frames, including those no longer kept."""
        return self._dropped + len(self._frames)

    def append(self, frame: bytes) -> None:
        """Append a frame. May be called from any thread."""
        with self._lock:
            self._frames.append(frame)
            self.size += len(frame)
            if self._waking:
                return
            self._waking = True
        self._loop.call_soon_threadsafe(self._wake)

    def offer(self, frame: bytes) -> bool:
        """Append a frame unless the client is too far behind. May be called from any thread."""
        if self.size > MAX_UNREAD:
            return False
        self.append(frame)
        return True

    def offer_or_end(self, frame: bytes) -> None:
        """Append a frame, or end the stream: a stream of changes must not have gaps."""
        if not (self.ended or self.offer(frame)):
            self.ended = True
            self._loop.call_soon_threadsafe(self.end)

    def frame(self, number: int) -> bytes | None:
        """Return the frame with that number, counted from 1; None if it is no longer kept."""
        index = number - 1 - self._dropped
        return self._frames[index] if index >= 0 else None

    def mark_read(self, number: int) -> None:
        """Drop the frames up to *number*; a resumable stream keeps them up to a limit."""
        with self._lock:
            while self._dropped < number and (self.id is None or self.size > MAX_UNREAD):
                self.size -= len(self._frames.popleft())
                self._dropped += 1

    def end(self) -> None:
        """End the stream. Must be called from the event loop."""
        self.ended = True
        self._wake()

    def close_connections(self) -> None:
        """Close the connections but not the stream, which can be resumed. Thread-safe."""
        self._loop.call_soon_threadsafe(self._close_connections)

    def _close_connections(self) -> None:
        for subscriber in self._subscribers:
            subscriber.closed = True
        self._wake()

    def _wake(self) -> None:
        # Reset the flag first, so that a frame appended from now on wakes the writers again.
        self._waking = False
        for subscriber in self._subscribers:
            subscriber.wake.set()

    async def write_to(
        self, send: Send, *, start: int, prime: bool, expires: float | None = None
    ) -> None:
        """Send the events after *start*, until the stream ends or its connection is closed.

        The connection is closed when the client's token *expires*, in seconds since 1970.
        """
        subscriber = Subscriber(expires)
        self._subscribers.add(subscriber)
        id = (self.id or "").encode()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
            # daphne sends the head of a response with the first part of its body.
            await _send_chunk(send, b"")
            if prime:
                await _send_chunk(send, b"id: %b-0\nretry: %d\ndata: \n\n" % (id, RETRY_MS))
            while not subscriber.is_closed():
                while start < self.count and not subscriber.is_closed():
                    start += 1
                    if (frame := self.frame(start)) is not None:
                        named = b"id: %b-%d\n" % (id, start) if id else b""
                        await _send_chunk(send, b"event: message\n%bdata: %b\n\n" % (named, frame))
                        self.mark_read(start)
                    if start % YIELD_EVERY == 0:
                        # Sending does not wait while the socket has room, so let other tasks run.
                        await asyncio.sleep(0)
                if self.ended:
                    break
                seconds = KEEP_ALIVE
                if expires is not None:
                    seconds = min(seconds, max(0.0, expires - time.time()))
                try:
                    # Not `wait_for`, which can lose a cancellation that arrives at the same moment.
                    async with asyncio.timeout(seconds):
                        await subscriber.wake.wait()
                except TimeoutError:
                    if not subscriber.is_closed():
                        await _send_chunk(send, b": still here\n\n")
                subscriber.wake.clear()
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._subscribers.discard(subscriber)

    async def read(self, start: int) -> AsyncIterator[bytes]:
        """Yield the frames after *start*, to the end of the stream."""
        subscriber = Subscriber()
        self._subscribers.add(subscriber)
        try:
            while not (self.ended and start >= self.count):
                while start < self.count:
                    start += 1
                    if (frame := self.frame(start)) is not None:
                        yield frame
                        self.mark_read(start)
                if not self.ended:
                    await subscriber.wake.wait()
                    subscriber.wake.clear()
        finally:
            self._subscribers.discard(subscriber)


class Subscriber:
    """Wakes up when the stream has more frames."""

    def __init__(self, expires: float | None = None) -> None:
        self.wake = asyncio.Event()
        self.closed = False
        self._expires = expires

    def is_closed(self) -> bool:
        has_expired = self._expires is not None and time.time() >= self._expires
        return self.closed or has_expired


async def _send_chunk(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def write_until_disconnected(
    stream: EventStream, request: HttpRequest, *, start: int = 0, expires: float | None = None
) -> None:
    """Send a stream's events after *start*, until it ends or the client disconnects.

    Also ends when the client's token *expires*.
    """
    writing = asyncio.ensure_future(
        stream.write_to(request.send, start=start, prime=False, expires=expires)
    )
    leaving = asyncio.ensure_future(disconnected(request.receive))
    try:
        await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (writing, leaving):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def disconnected(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
