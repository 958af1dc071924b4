"""Server-sent events: decodes a stream's events from bytes as they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from .http_errors import HttpFailure

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
            self._add(self._whole_line(), events)
            self._parts.append(line)
            self._pending += len(line)
        if self._pending > self._limit:
            text = f"an event of the stream has more than {self._limit} bytes"
            raise HttpFailure(text, is_too_large=True)
        return events

    def _whole_line(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        return line

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
