"""Cuts a file into pieces, each with at most one JSON value in it; put together, they are the file.

Read are JSONL, JSON in any layout (a long array item by item) and logs with JSON in their lines.
No more is kept in memory than the largest value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

import msgspec

from .validation import decoded

NOTHING: Any = msgspec.UNSET
"""A piece without JSON: blanks, punctuation, lines of a log."""
BROKEN: Any = msgspec.NODEFAULT
"""A piece that sets out to be JSON and is not."""

LONGEST = 8 * 1024 * 1024
# Possessive: of a string that is cut off nothing is tried twice.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)
_OPEN, _CLOSE, _QUOTE = b"{[", b"}]", b'"'
_decode = msgspec.json.decode


class Piece(msgspec.Struct):
    """Some bytes of a file, the JSON value among them, and the line that it begins in."""

    line: int
    raw: bytes
    value: Any = NOTHING
    start: int = 0
    """Where in *raw* the value's JSON begins, and where it ends."""
    end: int = -1
    place: str = ""
    """The pointer to the value, where it is an item of a long array."""

    @property
    def body(self) -> bytes:
        return self.raw[self.start : self._end]

    def replaced(self, body: bytes) -> bytes:
        """The bytes with other JSON in the place of the value's."""
        return self.raw[: self.start] + body + self.raw[self._end :]

    @property
    def _end(self) -> int:
        return len(self.raw.rstrip()) if self.end < 0 else self.end


def pieces(file: IO[bytes]) -> Iterator[Piece]:
    """All of the file, in order."""
    line, rest = 1, b""
    while chunk := rest or file.readline(LONGEST):
        rest = b""
        try:
            value = _decode(chunk)
        except (ValueError, RecursionError) as exc:
            begins = chunk.lstrip()[:1]
            if begins and begins in _OPEN and "truncated" in str(exc):
                splitter = Splitter(line)
                yield from splitter.split(chunk, file)
                line, rest = splitter.line, splitter.rest
                continue
            piece, rest = _in_a_line(chunk, line)
        else:
            piece = Piece(line, chunk, value)
        yield piece
        line += piece.raw.count(b"\n")


def _in_a_line(chunk: bytes, line: int) -> tuple[Piece, bytes]:
    """The JSON object in a line, whatever stands before it, and what follows it."""
    begins = chunk.lstrip().startswith(b"{")
    start = chunk.find(b"{")
    while start >= 0:
        end = _end_of(chunk, start)
        value = _loosely(chunk[start:end]) if end else NOTHING
        if isinstance(value, dict) and value:
            # After an object that stands first another may follow; in a log, no more than words.
            end_of_piece = end if begins and chunk[end:].strip() else len(chunk)
            piece = Piece(line, chunk[:end_of_piece], value, start, end)
            return piece, chunk[end_of_piece:]
        start = chunk.find(b"{", end or start + 1)
    return Piece(line, chunk, BROKEN if begins else NOTHING), b""


def _loosely(text: bytes) -> Any:
    """The value, also where it has NaN in it, which a rule will then find; or NOTHING."""
    try:
        return decoded(text)
    except (ValueError, RecursionError):
        return NOTHING


def _end_of(text: bytes, start: int) -> int:
    """Where the bracket at *start* is closed; 0 if it is not."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        char = token[0][:1]
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth == 0:
                return token.end()
    return 0


class Splitter:
    """Finds the end of a value that goes over many lines; of an array, the end of each item."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.rest = b""
        """What was read and stands after the value."""
        self._kept = bytearray()
        self._scanned = 0
        self._depth = 0
        self._base = 0
        self._begun = 0
        self._done = False
        self._items = 0

    def split(self, chunk: bytes, file: IO[bytes]) -> Iterator[Piece]:
        """The values in *chunk* and in as much of the file as it takes to close the first."""
        while chunk:
            self._kept += chunk
            yield from self._cut(self._spans())
            if self._done:
                self.rest = bytes(self._kept)
                return
            chunk = file.readline(LONGEST)
        if self._kept:
            yield Piece(self.line, bytes(self._kept), BROKEN)

    def _spans(self) -> list[tuple[int, int]]:
        """Where there are whole values in what is kept."""
        spans: list[tuple[int, int]] = []
        for token in _TOKEN.finditer(self._kept, self._scanned):
            char = token[0][:1]
            if char == _QUOTE:
                if token.end() - token.start() == 1:
                    # A string that goes on in what has not been read yet.
                    self._scanned = token.start()
                    return spans
            elif char in _OPEN:
                self._open(char, token.start())
            elif self._close():
                spans.append((self._begun, token.end()))
            self._scanned = token.end()
            if self._done:
                break
        return spans

    def _open(self, char: bytes, at: int) -> None:
        if self._depth == 0 and char == b"[":
            self._base = 1
        elif self._depth == self._base:
            self._begun = at
        self._depth += 1

    def _close(self) -> bool:
        """Whether a value ends here; an array's end is none."""
        self._depth -= 1
        self._done = self._depth == 0
        return self._depth == self._base

    def _cut(self, spans: list[tuple[int, int]]) -> Iterator[Piece]:
        gone = 0
        for start, end in spans:
            raw = bytes(self._kept[gone:end])
            self.line += raw.count(b"\n", 0, start - gone)
            value = _loosely(raw[start - gone :])
            place = f"/{self._items}" if self._base else ""
            value = BROKEN if value is NOTHING else value
            yield Piece(self.line, raw, value, start - gone, end - gone, place)
            self._items += 1
            self.line += raw.count(b"\n", start - gone)
            gone = end
        if self._done and self._scanned > gone:
            raw = bytes(self._kept[gone : self._scanned])
            yield Piece(self.line, raw)
            self.line += raw.count(b"\n")
            gone = self._scanned
        del self._kept[:gone]
        self._scanned -= gone
        self._begun -= gone
