"""Reads an HTTP/1.1 response from bytes as they arrive; it knows nothing of sockets."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

import msgspec

from ..core.limits import MAX_BYTES

MAX_HEAD = 64 * 1024
"""The maximum size of a status line and headers, and of a chunked body's trailers, in bytes."""
_MAX_INTERIM = 20
"""How many 1xx responses may precede the final one."""
_MAX_SIZE_LINE = 4096
_MAX_RATIO = 100
"""How many times its compressed size a response may have, beyond the first _FREE bytes."""
_FREE = 1024 * 1024

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: .*)?")
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class BadResponse(Exception):
    """The server does not speak HTTP/1.1, or its response is too large."""

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class TooLargeResponse(BadResponse):
    """The body has more bytes than are read, or unpacks to far more than was sent."""


class ResponseHead(msgspec.Struct, frozen=True):
    """The status and the headers; a repeated header has all its values, with commas between."""

    status: int
    headers: dict[str, str]
    """By their names in lower case."""
    cookies: tuple[str, ...] = ()
    """The values of `Set-Cookie`, which commas cannot separate."""
    is_old: bool = False
    """Whether it is HTTP/1.0."""


def read_head(head: bytes) -> ResponseHead:
    """Read the status line and headers, without the empty line at their end; raises BadResponse."""
    if _CONTROLS.search(head):
        raise BadResponse("the headers of the response have control characters in them")
    first, *lines = head.decode("latin-1").split("\n")
    found = _STATUS_LINE.fullmatch(first.rstrip("\r"))
    if found is None:
        raise BadResponse("the server does not answer in HTTP/1.1", first)
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name[0] in " \t" or name[-1] in " \t":
            raise BadResponse("a header of the response is malformed", line)
        name, value = name.lower(), value.strip(" \t\r")
        if name == "set-cookie":
            cookies.append(value)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return ResponseHead(int(found[2]), headers, tuple(cookies), found[1] == "0")


class ResponseReader:
    """One response: `feed` takes bytes, and gathers the body until `take`."""

    def __init__(self, method: str) -> None:
        self.head: ResponseHead | None = None
        self.is_complete = False
        self.may_keep = False
        """Whether the connection can be reused after this response."""
        self.size = 0
        """How many bytes of the body were not taken yet."""
        self._body = bytearray()
        self._method = method
        self._buffer = b""
        self._at = 0
        """Where the unread bytes of the buffer begin."""
        # Not `self._read_head`: a reader that kept its own method would be a reference cycle.
        self._step: Callable[[ResponseReader], bool] = ResponseReader._read_head
        self._searched = 0
        self._interim = 0
        self._left = 0
        self._unzip: _Unzip | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes from the server; raises BadResponse."""
        self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
        self._at = 0
        while self._at < len(self._buffer) and not self.is_complete and self._step(self):
            pass
        if self._at < len(self._buffer) and self.is_complete:
            # The server sent more than the response, so the next bytes cannot be trusted.
            self.may_keep = False

    def end(self) -> None:
        """Handle the end of the connection; raises BadResponse if the response is not complete."""
        if self.is_complete:
            return
        if self.head is None:
            raise BadResponse("the server closed the connection before it answered")
        if self._step is not ResponseReader._read_all:
            raise BadResponse("the server closed the connection within the response")
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
        # Some programs end their lines with only \n.
        bare = buffer.find(b"\n\n", start, len(buffer) if end < 0 else end)
        at, length = (end, 4) if bare < 0 else (bare, 2)
        if (at if at >= 0 else len(buffer)) - begin > MAX_HEAD:
            raise BadResponse(f"the headers of the response have more than {MAX_HEAD} bytes")
        if at < 0:
            self._searched = len(buffer) - begin
            return False
        head = read_head(buffer[begin:at])
        self._at = at + length
        self._searched = 0
        if head.status >= 200:
            self._begin_body(head)
        elif head.status == 101 or self._interim >= _MAX_INTERIM:
            raise BadResponse(f"the server sends the status {head.status} out of place")
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
                text = "the response has a compression that was not asked for"
                raise BadResponse(text, encoding)
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
        line = self._line(_MAX_SIZE_LINE, "size of a chunk")
        if line is None:
            return False
        found = _SIZE.fullmatch(line)
        if found is None:
            raise BadResponse("the size of a chunk is malformed", line.decode("latin-1"))
        self._left = int(found[1], 16)
        if self._left > MAX_BYTES:
            raise TooLargeResponse(f"a chunk of the response has more than {MAX_BYTES} bytes")
        self._step = ResponseReader._read_chunk if self._left else ResponseReader._read_trailers
        return True

    def _read_chunk(self) -> bool:
        if self._left:
            self._take_counted()
            if self._left:
                return True
        line = self._line(2, "end of a chunk")
        if line is None:
            return False
        if line:
            raise BadResponse("a chunk is longer than its size")
        self._step = ResponseReader._read_size
        return True

    def _read_trailers(self) -> bool:
        line = self._line(MAX_HEAD, "trailers")
        if line is None:
            return False
        self._interim += len(line)
        if self._interim > MAX_HEAD:
            raise BadResponse("the trailers of the response are too large")
        if not line:
            self._complete()
        return True

    def _line(self, limit: int, what: str) -> bytes | None:
        begin = self._at
        end = self._buffer.find(b"\n", begin)
        if (end if end >= 0 else len(self._buffer)) - begin > limit:
            raise BadResponse(f"the {what} of the response is too long")
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
            raise TooLargeResponse(f"the response has more than {MAX_BYTES} bytes")

    def _complete(self) -> None:
        if self._unzip is not None and self._unzip.is_cut_off:
            raise BadResponse("the compressed response is cut off")
        self.is_complete = True


def _length(text: str) -> int:
    """Read Content-Length, which may repeat the same value."""
    values = {each.strip() for each in text.split(",")}
    value = values.pop()
    if values or not value.isascii() or not value.isdigit() or len(value) > 15:
        raise BadResponse("the response has a malformed Content-Length", text)
    if int(value) > MAX_BYTES:
        raise TooLargeResponse(f"the response has more than {MAX_BYTES} bytes")
    return int(value)


class _Unzip:
    """Unpacks gzip, and refuses data that unpacks to far more than was sent."""

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
            raise TooLargeResponse(f"the response unpacks to more than {_MAX_RATIO} times its size")
        return found
