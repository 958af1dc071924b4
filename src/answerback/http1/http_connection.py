"""One HTTP/1.1 connection: its errors, requests, responses and event streams."""

from __future__ import annotations

import asyncio
import re
import select
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import msgspec

from ..core.limits import LARGE_BODY, MAX_BYTES

MAX_HEAD = 64 * 1024
"""The maximum size of a status line and headers, and of a chunked body's trailers, in bytes."""
_MAX_INTERIM = 20
"""How many 1xx responses may precede the final one."""
_MAX_SIZE_LINE = 4096
_MAX_RATIO = 100
"""The maximum compression ratio of a response that decompresses to more than _FREE bytes."""
_FREE = 1024 * 1024
_READ_BYTES = 64 * 1024
"""The maximum size of one read."""
_MAX_AHEAD = 128 * 1024
"""How many bytes of a stream are read ahead; the reader decodes them all at once."""
_DRAIN_SECONDS = 0.5
_MAX_DRAINED = 64 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: .*)?")
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class BadResponse(Exception):
    """The server does not speak HTTP/1.1, or its response is too large."""

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class TooLargeResponse(BadResponse):
    """The body is larger than the limit, or decompresses to far more than was sent."""


class HttpFailure(Exception):
    """A request got no response, or only part of one.

    *may_have_run* says whether the server may have acted on the request. *quoted* is the malformed
    part of the response; the message leaves it out, because it may repeat credentials.
    *is_too_large* says whether the response was refused because of its size.
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


class ResponseHead(msgspec.Struct, frozen=True):
    """The status and the headers; the values of a repeated header are joined with commas."""

    status: int
    headers: dict[str, str]
    """The headers, by lower-case name."""
    cookies: tuple[str, ...] = ()
    """The values of `Set-Cookie`, which cannot be joined with commas."""
    is_old: bool = False
    """Whether the response is HTTP/1.0."""


def read_head(head: bytes) -> ResponseHead:
    """Parse the status line and headers, without the final empty line; raises BadResponse."""
    if _CONTROLS.search(head):
        raise BadResponse("the response headers contain control characters")
    first, *lines = head.decode("latin-1").split("\n")
    found = _STATUS_LINE.fullmatch(first.rstrip("\r"))
    if found is None:
        raise BadResponse("the response is not HTTP/1.1", first)
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name[0] in " \t" or name[-1] in " \t":
            raise BadResponse("a response header is malformed", line)
        name, value = name.lower(), value.strip(" \t\r")
        if name == "set-cookie":
            cookies.append(value)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return ResponseHead(int(found[2]), headers, tuple(cookies), found[1] == "0")


class ResponseReader:
    """One response: `feed` accepts bytes and buffers the body until `take` is called."""

    def __init__(self, method: str) -> None:
        self.head: ResponseHead | None = None
        self.is_complete = False
        self.may_keep = False
        """Whether the connection can be reused after this response."""
        self.size = 0
        """How many bytes of the body have not been taken yet."""
        self._body = bytearray()
        self._method = method
        self._buffer = b""
        self._at = 0
        """Where the unread part of the buffer starts."""
        # Not `self._read_head`: a reader that holds its own bound method creates a reference cycle.
        self._step: Callable[[ResponseReader], bool] = ResponseReader._read_head
        self._searched = 0
        self._interim = 0
        self._left = 0
        self._unzip: _Unzip | None = None

    def feed(self, data: bytes) -> None:
        """Process bytes from the server; raises BadResponse."""
        self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
        self._at = 0
        while self._at < len(self._buffer) and not self.is_complete and self._step(self):
            pass
        if self._at < len(self._buffer) and self.is_complete:
            # The server sent more than the response, so the next bytes cannot be trusted.
            self.may_keep = False

    def end(self) -> None:
        """Handle the end of the connection; raises BadResponse if the response is incomplete."""
        if self.is_complete:
            return
        if self.head is None:
            raise BadResponse("the server closed the connection before it answered")
        if self._step is not ResponseReader._read_all:
            raise BadResponse("the server closed the connection in the middle of the response")
        self._complete()

    def take(self) -> bytes:
        """Return the part of the body that has arrived since the last call."""
        taken = bytes(self._body)
        self._body.clear()
        self.size = 0
        return taken

    def _read_head(self) -> bool:
        buffer, begin = self._buffer, self._at
        start = begin + max(0, self._searched - 3)
        end = buffer.find(b"\r\n\r\n", start)
        # Some servers end lines with a bare \n.
        bare = buffer.find(b"\n\n", start, len(buffer) if end < 0 else end)
        at, length = (end, 4) if bare < 0 else (bare, 2)
        if (at if at >= 0 else len(buffer)) - begin > MAX_HEAD:
            raise BadResponse(f"the response headers have more than {MAX_HEAD} bytes")
        if at < 0:
            self._searched = len(buffer) - begin
            return False
        head = read_head(buffer[begin:at])
        self._at = at + length
        self._searched = 0
        if head.status >= 200:
            self._begin_body(head)
        elif head.status == 101 or self._interim >= _MAX_INTERIM:
            raise BadResponse(f"the server sent an unexpected status {head.status}")
        else:
            self._interim += 1
        return True

    def _begin_body(self, head: ResponseHead) -> None:
        headers = head.headers
        self.head = head
        options = headers.get("connection", "").lower()
        self.may_keep = "close" not in options and (not head.is_old or "keep-alive" in options)
        has_none = head.status in (204, 304) or self._method == "HEAD"
        if has_none or (self._method == "CONNECT" and head.status < 300):
            self._complete()
            return
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            if encoding not in ("gzip", "x-gzip"):
                raise BadResponse("the response has an encoding that was not requested", encoding)
            self._unzip = _Unzip()
        length = headers.get("content-length")
        if "transfer-encoding" in headers:
            if length is not None:
                raise BadResponse("the response has a Content-Length and a Transfer-Encoding")
            if headers["transfer-encoding"].lower() != "chunked" or head.is_old:
                raise BadResponse("the response has an unknown Transfer-Encoding")
            self._step = ResponseReader._read_size
        elif length is None:
            self.may_keep = False
            self._step = ResponseReader._read_all
        else:
            self._left = _length(length)
            self._step = ResponseReader._read_counted
            if not self._left:
                self._complete()

    def _read_counted(self) -> bool:
        self._take_counted()
        if not self._left:
            self._complete()
        return True

    def _take_counted(self) -> None:
        piece = self._buffer[self._at : self._at + self._left]
        self._at += len(piece)
        self._left -= len(piece)
        self._add(piece)

    def _read_all(self) -> bool:
        piece, self._at = self._buffer[self._at :], len(self._buffer)
        self._add(piece)
        return True

    def _read_size(self) -> bool:
        line = self._line(_MAX_SIZE_LINE, "chunk size")
        if line is None:
            return False
        found = _SIZE.fullmatch(line)
        if found is None:
            raise BadResponse("a chunk size is malformed", line.decode("latin-1"))
        self._left = int(found[1], 16)
        if self._left > MAX_BYTES:
            raise TooLargeResponse(f"a chunk of the response is larger than {MAX_BYTES} bytes")
        self._step = ResponseReader._read_chunk if self._left else ResponseReader._read_trailers
        return True

    def _read_chunk(self) -> bool:
        if self._left:
            self._take_counted()
            if self._left:
                return True
        line = self._line(2, "chunk end")
        if line is None:
            return False
        if line:
            raise BadResponse("a chunk is longer than its size")
        self._step = ResponseReader._read_size
        return True

    def _read_trailers(self) -> bool:
        line = self._line(MAX_HEAD, "trailer")
        if line is None:
            return False
        self._interim += len(line)
        if self._interim > MAX_HEAD:
            raise BadResponse("the response trailers are too large")
        if not line:
            self._complete()
        return True

    def _line(self, limit: int, what: str) -> bytes | None:
        begin = self._at
        end = self._buffer.find(b"\n", begin)
        if (end if end >= 0 else len(self._buffer)) - begin > limit:
            raise BadResponse(f"a {what} in the response is too long")
        if end < 0:
            return None
        self._at = end + 1
        return self._buffer[begin:end].removesuffix(b"\r")

    def _add(self, piece: bytes) -> None:
        if self._unzip is not None:
            piece = self._unzip.feed(piece)
        self._body += piece
        self.size += len(piece)
        if self.size > MAX_BYTES:
            raise TooLargeResponse(f"the response is larger than {MAX_BYTES} bytes")

    def _complete(self) -> None:
        if self._unzip is not None and self._unzip.is_cut_off:
            raise BadResponse("the compressed response is cut off")
        self.is_complete = True


def _length(text: str) -> int:
    """Parse Content-Length, which may repeat the same value."""
    values = {each.strip() for each in text.split(",")}
    value = values.pop()
    if values or not value.isascii() or not value.isdigit() or len(value) > 15:
        raise BadResponse("the response has a malformed Content-Length", text)
    if int(value) > MAX_BYTES:
        raise TooLargeResponse(f"the response is larger than {MAX_BYTES} bytes")
    return int(value)


class _Unzip:
    """Decompresses gzip data, and refuses data that expands to far more than was sent."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._packed = 0
        self._unpacked = 0

    @property
    def is_cut_off(self) -> bool:
        return bool(self._packed) and not self._zlib.eof

    def feed(self, piece: bytes) -> bytes:
        self._packed += len(piece)
        room = max(_FREE, _MAX_RATIO * self._packed) - self._unpacked
        try:
            found = self._zlib.decompress(piece, min(room, MAX_BYTES) + 1)
        except zlib.error:
            raise BadResponse("the compressed response is malformed") from None
        self._unpacked += len(found)
        if self._zlib.unused_data:
            raise BadResponse("the compressed response is malformed")
        if self._zlib.unconsumed_tail or len(found) > room:
            raise TooLargeResponse(f"the response expands to more than {_MAX_RATIO} times its size")
        return found


class HttpConnection(asyncio.Protocol):
    """Carries one request at a time; *on_idle* is called when the connection can be reused."""

    def __init__(self, on_idle: Callable[[HttpConnection], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_closed = False
        self.idle_since = 0.0
        self.keep_seconds: float | None = None
        """How long the server promises to keep the connection open."""
        self._on_idle = on_idle
        self._reader: ResponseReader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: HttpFailure | None = None
        self._wants_all = False
        self._draining: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._can_read = _readiness(transport)
        if hasattr(transport, "max_size"):
            # Parsing 256 KB of tiny chunks at once would block the event loop.
            transport.max_size = _READ_BYTES

    def is_stale(self) -> bool:
        """Return whether an idle connection is closed, or has received unexpected bytes."""
        return self.is_closed or self._can_read()

    async def request(self, method: str, head: bytes, body: bytes | None) -> ResponseHead:
        """Send a request and wait for the response's head; raises HttpFailure.

        The connection is closed on failure.
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
        """Return the next part of the body, which is empty at the end; raises HttpFailure."""
        reader = self._reader
        assert reader is not None
        while not reader.size:
            if reader.is_complete:
                return b""
            self._resume()
            await self._more()
        return reader.take()

    def release(self) -> None:
        """Stop reading; keep the connection if the response is complete, otherwise close it."""
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
        """Wait in the background for the end of a response that is no longer needed."""
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
            # No request is waiting for a response.
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
        began = self._reader is not None and self._reader.head is not None
        what = "reading the response failed" if began else "the connection broke"
        self._error = HttpFailure(
            f"{what}: {problem}",
            quoted=problem.quoted,
            is_too_large=isinstance(problem, TooLargeResponse),
        )
        self._wake()

    async def _more(self) -> None:
        """Wait for more data; raises HttpFailure if no more will arrive."""
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
    """A response whose body has not been read yet; it is read through the connection."""

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
    """Return a check for whether the socket is readable; the event loop may not know yet."""
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
    """Splits a stream into events. An event without an empty line at its end is dropped."""

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
            complete = b"".join(self._parts)
            self._parts.clear()
            if self._is_first:
                self._is_first = False
                complete = complete.removeprefix(_BYTE_ORDER_MARK)
            self._add(complete, events)
            self._parts.append(line)
            self._pending += len(line)
        if self._pending > self._limit:
            text = f"an event in the stream is larger than {self._limit} bytes"
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
    """A response's events; *read_some* returns the next bytes, or b"" at the end.

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
