"""Cuts a file into pieces, each with at most one JSON value in it; put together, they are the file.

Read are JSONL, JSON in any layout (a long array item by item) and logs with JSON in their lines.
No more is kept in memory than the largest value.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import IO

import msgspec

from .lines import BROKEN, NOTHING, TOKEN, Piece, broken, goes_on, in_a_line, loosely

LONGEST = 8 * 1024 * 1024
_OPEN, _QUOTE = b"{[", b'"'
_decode = msgspec.json.decode


def pieces(file: IO[bytes]) -> Iterator[Piece]:
    """All of the file, in order."""
    line, rest = 1, file.readline(LONGEST)
    if rest.startswith(BOM_UTF8):
        yield Piece(line, BOM_UTF8)
        rest = rest[len(BOM_UTF8) :] or file.readline(LONGEST)
    while chunk := rest or file.readline(LONGEST):
        rest, tail = b"", b""
        try:
            value = _decode(chunk)
        except (ValueError, RecursionError) as exc:
            begins = chunk.lstrip()[:1]
            loose = begins != b"{"
            if begins and begins in _OPEN and "truncated" in str(exc):
                tail, loose = chunk, False
            else:
                found, tail = in_a_line(chunk, line, loose=loose)
                yield from found
        else:
            yield Piece(line, chunk, value)
        if tail:
            splitter = Splitter(line, loose=loose)
            yield from splitter.split(tail, file)
            line, rest = splitter.line, splitter.rest
        else:
            line += chunk.count(b"\n")


class Splitter:
    """Finds the end of a value that goes over many lines; of an array, the end of each item."""

    def __init__(self, line: int, *, loose: bool = False) -> None:
        self.line = line
        self._loose = loose
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
        if self._loose:
            self.rest = file.readline(LONGEST)
            if not goes_on(chunk, self.rest):
                yield Piece(self.line, chunk, broken(chunk))
                self.line += 1
                return
            chunk += self.rest
        while chunk:
            self._kept += chunk
            yield from self._cut(self._spans())
            if self._done:
                self.rest = bytes(self._kept)
                return
            chunk = file.readline(LONGEST)
        self.rest = b""
        if self._kept:
            kept = bytes(self._kept)
            yield Piece(self.line, kept, broken(kept) if self._loose else BROKEN)

    def _spans(self) -> list[tuple[int, int]]:
        """Where there are whole values in what is kept."""
        spans: list[tuple[int, int]] = []
        for token in TOKEN.finditer(self._kept, self._scanned):
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
            value = loosely(raw[start - gone :])
            place = f"/{self._items}" if self._base else ""
            if value is NOTHING:
                value = broken(raw) if self._loose else BROKEN
            yield Piece(self.line, raw, value, start - gone, end - gone, place, self._loose)
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
