"""One HTTP/1.1 connection: its errors, requests, responses and event streams."""

from __future__ import annotations

import asyncio
import re
import select
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import msgspec

from ..core.limits import LARGE_BODY
from .http_parsing import BadResponse, ResponseHead, ResponseReader, TooLargeResponse


class HttpFailure(Exception):
    """A request got no response, or half of one.

    *may_have_run* says whether the server may have acted on the request. *quoted* is the malformed
    part of the response; the message leaves it out, because it may repeat credentials.
    *is_too_large* says that the response was refused for its size.
    """

    def __init__(
        self,
        message: str,
        *,
        may_have_run: bool = True,
        quoted: str = "",
        is_too_large: bool = False,
    ) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run
        self.quoted = quoted
        self.is_too_large = is_too_large


_READ_BYTES = 64 * 1024
"""The maximum size of one read."""
_MAX_AHEAD = 128 * 1024
"""Bytes of a stream that are read ahead of the reader, which then decodes them at once."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DRAIN_SECONDS = 0.5
_MAX_DRAINED = 64 * 1024


class HttpConnection(asyncio.Protocol):
    """Carries one request at a time; *on_idle* gets the connection when it can be used again."""

    def __init__(self, on_idle: Callable[[HttpConnection], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_closed = False
        self.idle_since = 0.0
        self.keep_seconds: float | None = None
        """How long the server promises to keep the connection."""
        self._on_idle = on_idle
        self._reader: ResponseReader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: HttpFailure | None = None
        self._wants_all = False
        self._draining: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._ready = _readiness(transport)
        if hasattr(transport, "max_size"):
            # Parsing 256 KB of tiny chunks at once would hold the event loop.
            transport.max_size = _READ_BYTES

    def is_stale(self) -> bool:
        """Return whether an idle connection is closed, or has bytes that nobody asked for."""
        return self.is_closed or self._ready()

    async def request(self, method: str, head: bytes, body: bytes | None) -> ResponseHead:
        """Send a request, and wait for its response's head; raises HttpFailure.

        The connection is closed if that fails.
        """
        transport = self.transport
        if transport is None or self.is_closed or transport.is_closing():
            raise HttpFailure("the connection was closed", may_have_run=False)
        reader = self._reader = ResponseReader(method)
        self._error, self._wants_all = None, False
        if body is None or len(body) < LARGE_BODY:
            transport.write(head if not body else head + body)
        else:
            transport.write(head)
            transport.write(body)
        try:
            while reader.head is None:
                await self._more()
        except BaseException:
            self.close()
            raise
        return reader.head

    async def read_all(self) -> bytes:
        """Return the rest of the body; raises HttpFailure."""
        reader = self._reader
        assert reader is not None
        self._wants_all = True
        self._resume()
        while not reader.is_complete:
            await self._more()
        return reader.take()

    async def read_some(self) -> bytes:
        """Return the next part of the body, or nothing at its end; raises HttpFailure."""
        reader = self._reader
        assert reader is not None
        while not reader.size:
            if reader.is_complete:
                return b""
            self._resume()
            await self._more()
        return reader.take()

    def release(self) -> None:
        """Stop reading: the connection is kept if the response is complete, else closed."""
        reader = self._reader
        if reader is None or self._draining is not None:
            return
        self._reader = None
        transport = self.transport
        is_written = transport is not None and not transport.get_write_buffer_size()
        if reader.is_complete and reader.may_keep and is_written and not self.is_closed:
            if reader.head is not None and "keep-alive" in reader.head.headers:
                header = reader.head.headers["keep-alive"]
                pattern = r"(?:^|,)\s*timeout=(\d{1,9})\s*(?:,|$)"
                found = re.search(pattern, header, re.ASCII | re.IGNORECASE)
                self.keep_seconds = None if found is None else float(found[1])
            self._on_idle(self)
        else:
            self.close()

    def drain(self) -> None:
        """Wait in the background for the end of a response whose rest is not needed."""
        if self._reader is not None and not self._reader.is_complete and self._draining is None:
            self._resume()
            loop = asyncio.get_running_loop()
            self._draining = loop.call_later(_DRAIN_SECONDS, self.close)

    def close(self) -> None:
        self.is_closed = True
        if self._draining is not None:
            self._draining.cancel()
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None or reader.is_complete:
            # Nothing was asked.
            self.close()
            return
        try:
            reader.feed(data)
        except BadResponse as exc:
            self._fail(exc)
            self.close()
            return
        if self._draining is not None:
            if reader.is_complete:
                self._draining.cancel()
                self._draining = None
                self.release()
            elif reader.size > _MAX_DRAINED:
                self.close()
        elif self._waiter is not None:
            self._wake()
        elif reader.size > _MAX_AHEAD and not self._wants_all and self.transport is not None:
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection, which completes a response without a length."""
        self.is_closed = True
        reader = self._reader
        if reader is None or self._error is not None:
            return
        try:
            if exc is not None and not reader.is_complete:
                raise BadResponse(str(exc) or type(exc).__name__)
            reader.end()
            self._wake()
        except BadResponse as problem:
            self._fail(problem)

    def _fail(self, problem: BadResponse) -> None:
        reader = self._reader
        began = reader is not None and reader.head is not None
        what = "the response broke off" if began else "the connection broke"
        is_too_large = isinstance(problem, TooLargeResponse)
        self._error = HttpFailure(
            f"{what}: {problem}", quoted=problem.quoted, is_too_large=is_too_large
        )
        self._wake()

    async def _more(self) -> None:
        """Wait until more has arrived; raises HttpFailure if nothing more will."""
        if self._error is not None:
            raise self._error
        if self.is_closed:
            raise HttpFailure("the connection was closed")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _resume(self) -> None:
        transport = self.transport
        if transport is not None and not self.is_closed and not transport.is_reading():
            transport.resume_reading()


class HttpResponse:
    """A response whose body is still to be read, by the methods of its connection."""

    def __init__(self, connection: HttpConnection, head: ResponseHead, url: str) -> None:
        self.status_code = head.status
        self.headers = head.headers
        self.url = url
        self.aread = connection.read_all
        self.read_some = connection.read_some
        self.close = connection.release
        self.drain = connection.drain

    @property
    def is_event_stream(self) -> bool:
        found = self.headers.get("content-type", "")
        return found.partition(";")[0].strip().lower() == "text/event-stream"

    async def read_up_to(self, limit: int) -> bytes:
        """Return the body, or its first *limit* bytes; raises HttpFailure."""
        body = bytearray()
        while len(body) < limit and (part := await self.read_some()):
            body += part
        return bytes(body[:limit])


def _readiness(transport: asyncio.BaseTransport) -> Callable[[], bool]:
    """Return a check whether the socket can be read; the event loop may not know it yet."""
    fd: int = transport.get_extra_info("socket").fileno()
    if not hasattr(select, "poll"):
        return lambda: bool(select.select([fd], [], [], 0)[0])
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return lambda: bool(poll.poll(0))


class StreamEvent(msgspec.Struct):
    """One event; *retry* is in milliseconds."""

    event: str
    data: bytes
    id: str
    retry: int | None


class EventDecoder:
    """Cuts a stream into events. An event without an empty line at its end is dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._ends_with_return = False
        self._is_first = True
        self._id = ""
        self._clear()

    def _clear(self) -> None:
        self._data: list[bytes] = []
        self._event = ""
        self._retry: int | None = None
        self._has_fields = False
        self._pending = 0

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Return the events that end in *data*; raises HttpFailure if one is too large."""
        if self._ends_with_return and data.startswith(b"\n"):
            data = data[1:]
        self._ends_with_return = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *lines = data.split(b"\n")
        self._parts.append(first)
        self._pending += len(first)
        events: list[StreamEvent] = []
        for line in lines:
            whole = b"".join(self._parts)
            self._parts.clear()
            if self._is_first:
                self._is_first = False
                whole = whole.removeprefix(_BYTE_ORDER_MARK)
            self._add(whole, events)
            self._parts.append(line)
            self._pending += len(line)
        if self._pending > self._limit:
            text = f"an event of the stream has more than {self._limit} bytes"
            raise HttpFailure(text, is_too_large=True)
        return events

    def _add(self, line: bytes, events: list[StreamEvent]) -> None:
        if not line:
            if self._has_fields:
                kind = self._event or "message"
                events.append(StreamEvent(kind, b"\n".join(self._data), self._id, self._retry))
            self._clear()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._event = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) < 10:
                self._retry = int(value)
            case _:
                if not name:
                    self._pending -= len(line)  # A comment is not kept.
                return
        self._has_fields = True


class ReceivedEvents(AsyncIterator[StreamEvent]):
    """A response's events; *read_some* gives the next bytes, or nothing at the end.

    *limit* is an event's maximum size in bytes; a larger one raises HttpFailure.
    """

    def __init__(self, read_some: Callable[[], Awaitable[bytes]], limit: int) -> None:
        self._read_some = read_some
        self._decoder = EventDecoder(limit)
        self._events: deque[StreamEvent] = deque()

    async def __anext__(self) -> StreamEvent:
        while not self._events:
            data = await self._read_some()
            if not data:
                raise StopAsyncIteration
            self._events.extend(self._decoder.feed(data))
        return self._events.popleft()
