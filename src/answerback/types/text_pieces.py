"""Decodes JSON text in pieces of some kilobytes, so that other threads can run in between.

The text is cut at commas, at any depth. Each piece becomes a JSON text of its own: before it stand
the openings of the containers that it continues, after it the ends of those that stay open.
msgspec decodes it, and its values are moved into the containers of the pieces before it.

    text     {"x":[[1,2,3],[4,5]]}
    pieces   {"x":[[1,2                                3],[4                          5]]}
    decoded  {"x":[[1,2,"last"],"last"],"last":0}      [["first",3],[4,"last"],"last"]      …
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from .decoded_json import discard
from .problems import InvalidJson

# msgspec decodes a piece in less than a millisecond.
_PIECE = 8_192
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LIST, _DICT = b"[{"


class NumberOutOfRange(ValueError):
    """A number is too large; *names* are the members of the outermost object with such numbers.

    Only the first piece with such a number was looked at.
    """

    def __init__(self, names: list[str]) -> None:
        super().__init__("number out of range")
        self.names = names


def load_in_pieces(raw: bytes, size: int = _PIECE) -> Any:
    """Decode JSON text that `refuse_bad_text` accepts, to the value that msgspec decodes.

    *size* is the number of bytes in a piece; a long string makes a piece longer. Raises
    InvalidJson or NumberOutOfRange.
    """
    loader = _PieceLoader()
    start = 0
    try:
        while start <= len(raw):
            end, closed, opened = _next_piece(raw, start, size)
            loader.add(raw[start:end], closed, opened, is_last=end == len(raw))
            start = end + 1
    except msgspec.ValidationError:
        names = loader.names_out_of_range()
        discard([loader.root])
        _refuse_malformed(raw)
        raise NumberOutOfRange(names) from None
    except msgspec.DecodeError as error:
        discard([loader.root])
        raise InvalidJson(_at_byte(str(error), start - loader.added_before)) from None
    return loader.root


def _refuse_malformed(raw: bytes) -> None:
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        raise InvalidJson(str(error)) from None


def _at_byte(message: str, offset: int) -> str:
    """Return the message with the byte's position in the whole text."""
    import re

    return re.sub(r"\(byte (\d+)\)", lambda found: f"(byte {int(found[1]) + offset})", message)


def _next_piece(raw: bytes, start: int, size: int) -> tuple[int, int, list[int]]:
    """Return where the piece ends, how many containers it closes, and the brackets that it opens.

    It ends before a comma between two values, or at the end of the text.
    """
    while True:
        text = raw[start : start + size]
        if b"\\" in text:
            # Escaped backslashes go first, so that a backslash before a quote escapes the quote.
            text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        # Every second part is inside a string.
        parts = text.split(b'"')
        if start + size >= len(raw):
            return len(raw), *_unmatched(b"".join(parts[::2]))
        at = len(text)
        for n in range(len(parts) - 1, -1, -1):
            at -= len(parts[n])
            if n % 2 == 0 and (comma := parts[n].rfind(b",")) >= 0:
                outside = b"".join(parts[:n:2]) + parts[n][:comma]
                return start + at + comma, *_unmatched(outside)
            at -= 1
        # A long string.
        size *= 2


def _unmatched(text: bytes) -> tuple[int, list[int]]:
    """Return the number of containers that the text closes, and the brackets that stay open."""
    brackets = text.translate(None, _NOT_BRACKETS)
    # Each round removes the innermost level, as long as this is quicker than the loop below.
    while len(fewer := brackets.replace(b"[]", b"").replace(b"{}", b"")) * 16 < len(brackets) * 15:
        brackets = fewer
    closed, opened = 0, list[int]()
    for bracket in brackets:
        if bracket in b"[{":
            opened.append(bracket)
        elif opened:
            opened.pop()
        else:
            closed += 1
    return closed, opened


def _is_out_of_range(text: msgspec.Raw) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return isinstance(error, msgspec.ValidationError)
    return False


class _PieceLoader:
    """The value so far, and its containers that are open at the end of the pieces so far."""

    def __init__(self) -> None:
        self.root: Any = None
        # The text that msgspec decoded last, and the length of what was put before the piece.
        self._text = b""
        self.added_before = 0
        # The containers that the last piece continued.
        self._continued: list[Any] = []
        # Outermost first.
        self._open: list[Any] = []
        # Random, so that no text has them: the first value of a container that an earlier piece
        # began, and the last value of one that a later piece continues.
        unknown = os.urandom(16).hex()
        self._first, self._last = f"first-{unknown}", f"last-{unknown}"

    def add(self, piece: bytes, closed: int, opened: list[int], *, is_last: bool) -> None:
        """Add a piece that closes and opens containers; raises msgspec.DecodeError."""
        # One more than it closes, because the values behind the last closed one are in that.
        continued = self._continued = self._open[max(len(self._open) - closed - 1, 0) :]
        brackets = list(opened)
        if closed < len(self._open):
            brackets.insert(0, _LIST if type(continued[0]) is list else _DICT)
        before = self._opening(continued)
        self.added_before = len(before)
        after = b"" if is_last else self._ending(brackets)
        self._text = before + piece + after
        value = msgspec.json.decode(self._text)
        inside = [] if is_last else self._take_open(value, len(brackets))
        if continued:
            self._move(value, continued)
            self._open[len(self._open) - closed :] = inside[1:]
        else:
            self.root, self._open = value, inside

    def names_out_of_range(self) -> list[str]:
        """Return the members of the outermost object with huge numbers in the last piece."""
        names = [self._first]
        if not self._continued or self._continued[0] is self.root:
            try:
                members = msgspec.json.decode(self._text, type=dict[str, msgspec.Raw])
            except msgspec.DecodeError:
                return []
            names = [name for name, text in members.items() if _is_out_of_range(text)]
        if self._first in names and type(self.root) is dict:
            entries = reversed(self.root.items())
            names[0] = next(name for name, value in entries if value is self._open[1])
        return [name for name in names if name != self._first]

    def _opening(self, containers: list[Any]) -> bytes:
        """Return the start of a text whose values continue the innermost of the containers."""
        starts = []
        for container in containers:
            starts.append("[" if type(container) is list else f'{{"{self._first}":')
        if containers:
            starts.append(f'"{self._first}",' if type(containers[-1]) is list else "0,")
        return "".join(starts).encode()

    def _ending(self, brackets: list[int]) -> bytes:
        """Return the end of a text whose last value is in the innermost of the brackets."""
        ends = {_LIST: f',"{self._last}"]', _DICT: f',"{self._last}":0}}'}
        # Without a container the comma is one too many, which msgspec refuses.
        return "".join(ends[each] for each in reversed(brackets)).encode() or b","

    def _take_open(self, value: Any, count: int) -> list[Any]:
        """Return the open containers of a decoded piece, and remove the last value of each."""
        found: list[Any] = []
        inside = [value]
        while len(found) < count:
            # Almost always the last one; not if an object has the same key twice.
            value = next(each for each in reversed(inside) if self._is_open(each))
            found.append(value)
            if type(value) is list:
                value.pop()
                inside = value
            else:
                del value[self._last]
                inside = value.values()
        return found

    def _is_open(self, value: Any) -> bool:
        if type(value) is list:
            return bool(value) and value[-1] == self._last
        return type(value) is dict and self._last in value

    def _move(self, value: Any, containers: list[Any]) -> None:
        """Move the values of a decoded piece to the containers that it continues."""
        for container in containers:
            if type(container) is list:
                inside = value[0]
                container += value[1:]
            else:
                inside = value.pop(self._first)
                container.update(value)
            value = inside
