"""A piece of a file, and the JSON in a line of a log, whatever words stand around it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..validation import decoded

NOTHING: Any = msgspec.UNSET
"""A piece without JSON: blanks, punctuation, lines of a log."""
BROKEN: Any = msgspec.NODEFAULT
"""A piece that sets out to be JSON and is not."""

# Possessive: of a string that is cut off nothing is tried twice.
TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)
# What a message or a reply has in it, and other words in braces have not.
_MESSAGE = re.compile(
    rb'\{[^{]*?"(?:jsonrpc|content|structuredContent|isError|success)"\s*:', re.DOTALL
)
_OBJECT = re.compile(rb'\{\s*(?:"|\Z)')
_UNDONE = re.compile(rb"[{\[,]\s*\Z")
_MOST_READ = 200_000
"""How many bytes are read in vain, so that a line of braces is not read again for each of them."""


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
    loose: bool = False
    """Whether there are other words in the line, so that the value may be anything."""

    @property
    def body(self) -> bytes:
        return self.raw[self.start : self._end]

    def replaced(self, body: bytes) -> bytes:
        """The bytes with other JSON in the place of the value's."""
        return self.raw[: self.start] + body + self.raw[self._end :]

    @property
    def _end(self) -> int:
        return len(self.raw.rstrip()) if self.end < 0 else self.end


def in_a_line(chunk: bytes, line: int, *, loose: bool) -> tuple[list[Piece], bytes]:
    """The pieces of a line, one for each object in it, and an object that may go on below."""
    found, tail = _objects(chunk, loose=loose)
    stop = len(chunk) if tail < 0 else tail
    made, gone = list[Piece](), 0
    for index, (start, end, value) in enumerate(found):
        # What follows the last one goes with it.
        to = end if index + 1 < len(found) else stop
        made.append(Piece(line, chunk[gone:to], value, start - gone, end - gone, loose=loose))
        gone = to
    if gone < stop:
        made.append(Piece(line, chunk[gone:stop]))
    return made, chunk[stop:]


def _objects(chunk: bytes, *, loose: bool) -> tuple[list[tuple[int, int, Any]], int]:
    """Where objects stand in a line, and where one begins that is not closed in it, or -1."""
    found = list[tuple[int, int, Any]]()
    start, read = chunk.find(b"{"), 0
    while start >= 0:
        end = _end_of(chunk, start)
        value = loosely(chunk[start:end]) if end else NOTHING
        if isinstance(value, dict) and value:
            found.append((start, end, value))
        elif not end and _may_go_on(chunk, start, loose=loose):
            return found, start
        elif value is NOTHING and _is_json(chunk, start, loose=loose or bool(found)):
            end = end or len(chunk)
            found.append((start, end, BROKEN))
        elif read > _MOST_READ:
            found.append((start, len(chunk), broken(chunk[start:])))
            break
        else:
            # Braces in prose, with perhaps an object in them.
            read += (end or len(chunk)) - start
            end = start + 1
        start = chunk.find(b"{", end)
    return found, -1


def _is_json(chunk: bytes, start: int, *, loose: bool) -> bool:
    """Whether a brace was meant to begin an object that is worth a word."""
    return not loose or _MESSAGE.match(chunk, start) is not None


def _may_go_on(chunk: bytes, start: int, *, loose: bool) -> bool:
    """Whether the line ends in the middle of an object, as it does when it is written indented."""
    if not loose:
        return True
    cut = not chunk.endswith(b"\n")
    return bool(_OBJECT.match(chunk, start)) and (cut or bool(_UNDONE.search(chunk, start)))


def goes_on(rest: bytes, after: bytes) -> bool:
    """Whether the next line has more of the object: a member, an item or a bracket."""
    return not rest.endswith(b"\n") or after.lstrip()[:1] in (b'"', b"{", b"[", b"}", b"]")


def broken(text: bytes) -> Any:
    """What to call braces that are not JSON: a broken message, or nothing at all."""
    return BROKEN if _MESSAGE.search(text) else NOTHING


def loosely(text: bytes) -> Any:
    """The value, also where it has NaN in it, which a rule will then find; or NOTHING."""
    try:
        return decoded(text)
    except (ValueError, RecursionError):
        return NOTHING


def _end_of(text: bytes, start: int) -> int:
    """Where the bracket at *start* is closed; 0 if it is not."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        char = token[0][:1]
        if char in b"{[":
            depth += 1
        elif char in b"}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return 0
