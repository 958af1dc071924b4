"""Server-sent events: what is said on a stream, and those who read it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from .request import IN_JSON, Incoming, Receive, Send

KEEP_ALIVE = 15.0
"""Seconds of silence after which a sign of life is sent."""
FULL = 1024 * 1024
"""Bytes that wait to be read on one stream; beyond them nothing is said but what must be."""
TURN = 16
"""Events after which other streams and calls have their turn."""
RETRY = 500
"""Milliseconds after which a client may come back to a line that was hung up."""

_EVENTS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class Asker(Protocol):
    """Who knows how to ask the client of a session."""

    async def ask(self, nonce: bytes, log: Log, method: str, params: Any) -> msgspec.Raw: ...


class Log:
    """The frames of one stream, in order; from any thread in, on the loop out.

    With an *id* its events have ids, and a client that lost the line can go on reading.
    What was read is kept only for such a client, and not without bounds.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, id: str | None = None) -> None:
        self.id = id
        self.ended = False
        self.size = 0
        self._frames: deque[bytes] = deque()
        self._forgotten = 0
        self._waking = False
        self._lock = threading.Lock()
        self._loop = loop
        self._lines: set[Reader] = set()

    @property
    def count(self) -> int:
        """How many frames there were, forgotten ones too."""
        return self._forgotten + len(self._frames)

    def append(self, frame: bytes) -> None:
        """May be called from any thread."""
        with self._lock:
            self._frames.append(frame)
            self.size += len(frame)
            if self._waking:
                return
            self._waking = True
        self._loop.call_soon_threadsafe(self._wake)

    def offer(self, frame: bytes) -> bool:
        """Append it, unless too much waits to be read already; from any thread."""
        if self.size > FULL:
            return False
        self.append(frame)
        return True

    def offer_or_end(self, frame: bytes) -> None:
        """For a stream that must not have gaps: its client comes back and looks anew."""
        if not (self.ended or self.offer(frame)):
            self.ended = True
            self._loop.call_soon_threadsafe(self.end)

    def frame(self, number: int) -> bytes | None:
        """The frame of that number, counted from 1; None if it is forgotten."""
        place = number - 1 - self._forgotten
        return self._frames[place] if place >= 0 else None

    def was_read(self, number: int) -> None:
        """Forget what nobody can ask for again; what can be is kept while there is room."""
        with self._lock:
            while self._forgotten < number and (self.id is None or self.size > FULL):
                self.size -= len(self._frames.popleft())
                self._forgotten += 1

    def end(self) -> None:
        """There will be no more; on the loop only."""
        self.ended = True
        self._wake()

    def hang_up(self) -> None:
        """Close the lines, not the log: their clients may come back. From any thread."""
        self._loop.call_soon_threadsafe(self._hang_up)

    def _hang_up(self) -> None:
        for line in self._lines:
            line.hung_up = True
        self._wake()

    def _wake(self) -> None:
        # First the flag, then the lines: what is appended after this line wakes them again.
        self._waking = False
        for line in self._lines:
            line.wake.set()

    async def write_to(self, send: Send, *, start: int, prime: bool) -> None:
        """Send the events from *start* on, until the log ends or the line is hung up."""
        line = Line(send, self)
        self._lines.add(line)
        try:
            await line.write(start, prime=prime)
        finally:
            self._lines.discard(line)

    async def read(self, start: int) -> AsyncIterator[bytes]:
        """The frames from *start* on, to the end of the log."""
        reader = Reader()
        self._lines.add(reader)
        try:
            while not (self.ended and start >= self.count):
                while start < self.count:
                    start += 1
                    if (frame := self.frame(start)) is not None:
                        yield frame
                        self.was_read(start)
                if not self.ended:
                    await reader.wake.wait()
                    reader.wake.clear()
        finally:
            self._lines.discard(reader)


class Reader:
    """One who is woken when there is more."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.hung_up = False


class Line(Reader):
    """One client's reading of a log."""

    def __init__(self, send: Send, log: Log) -> None:
        super().__init__()
        self._send = send
        self._log = log

    async def write(self, number: int, *, prime: bool) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
        if prime:
            await self._part(b"id: %b-0\nretry: %d\ndata: \n\n" % (self._id, RETRY))
        while not self.hung_up:
            while number < self._log.count:
                number += 1
                if (frame := self._log.frame(number)) is not None:
                    await self._part(self._event(number, frame))
                    self._log.was_read(number)
                if number % TURN == 0:
                    # Sending does not wait while there is room: others want their turn too.
                    await asyncio.sleep(0)
            if self._log.ended:
                break
            await self._wait()
        await self._send({"type": "http.response.body", "body": b""})

    @property
    def _id(self) -> bytes:
        return (self._log.id or "").encode()

    def _event(self, number: int, frame: bytes) -> bytes:
        if self._log.id is None:
            return b"event: message\ndata: %b\n\n" % frame
        return b"event: message\nid: %b-%d\ndata: %b\n\n" % (self._id, number, frame)

    async def _wait(self) -> None:
        try:
            # Not `wait_for`, which may lose a cancellation that comes just as it is woken.
            async with asyncio.timeout(KEEP_ALIVE):
                await self.wake.wait()
        except TimeoutError:
            await self._part(b": still here\n\n")
        self.wake.clear()

    async def _part(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


class Answer:
    """The answer to one POST: plain JSON, or events if something is said before it is ready.

    Nothing is decided until something is said, so that a status other than 200 survives.
    """

    _writing: asyncio.Task[None] | None = None
    _closed = False

    def __init__(
        self,
        incoming: Incoming,
        log: Log | None = None,
        *,
        prime: bool = False,
        asker: tuple[Asker, bytes] | None = None,
    ) -> None:
        self._incoming = incoming
        self._log = log
        self._prime = prime
        self._asker = asker
        self._loop = asyncio.get_running_loop()

    @property
    def log(self) -> Log:
        if self._log is None:
            self._log = Log(self._loop)
        return self._log

    def send(self, frame: bytes) -> None:
        """May be called from any thread; what a slow reader has no room for is dropped."""
        if not self._closed and self.log.offer(frame) and self._writing is None:
            self._loop.call_soon_threadsafe(self.begin)

    async def ask(self, method: str, params: Any) -> msgspec.Raw:
        if self._asker is None:
            raise RuntimeError("nobody can be asked on this wire")
        questions, nonce = self._asker
        answering = questions.ask(nonce, self.log, method, params)
        self.begin()
        return await answering

    def hang_up(self) -> None:
        if self.log.id is not None:
            self.log.hang_up()

    def begin(self) -> None:
        """Answer with events from now on."""
        if self._writing is None and not self._closed:
            writing = self.log.write_to(self._incoming.send, start=0, prime=self._prime)
            self._writing = self._loop.create_task(writing)

    def finish(self, frame: bytes | None, status: int = 200) -> Awaitable[None]:
        """Send the last frame: among the events, or by itself if nothing was said before."""
        if self._writing is None and frame is not None and not (self._log and self._log.count):
            self._closed = True
            return self._incoming.respond(status, IN_JSON, frame)
        return self._end(frame)

    async def _end(self, frame: bytes | None) -> None:
        if frame is not None:
            self.log.append(frame)
        self.begin()
        self._closed = True
        self.log.end()
        assert self._writing is not None
        await self._writing

    async def abandon(self) -> None:
        """The client has gone: say nothing more, whatever still runs."""
        self._closed = True
        if self._writing is None:
            await self._incoming.leave()
        else:
            self._writing.cancel()


async def write_until_gone(log: Log, incoming: Incoming, *, start: int = 0) -> None:
    """Send a log's events from *start* on, to its end or until the client hangs up."""
    writing = asyncio.ensure_future(log.write_to(incoming.send, start=start, prime=False))
    leaving = asyncio.ensure_future(gone(incoming.receive))
    try:
        await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (writing, leaving):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def gone(receive: Receive) -> None:
    """Wait until the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
