"""Finds the value at a JSON pointer in the bytes of a JSON text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

_BEFORE_NAME = re.compile(rb"[\s,]*")
_BEFORE_VALUE = re.compile(rb"[\s:]*")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


def locate(body: bytes, pointer: str) -> tuple[int, int]:
    """Return the start and end offsets of the value at *pointer*, or of the innermost value that
    can be found on the way to it."""
    start = len(body) - len(body.lstrip())
    end = len(body.rstrip())
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = _find_element(body[start:end], name)
        if found is None:
            break
        start, end = start + found[0], start + found[1]
    return start, end


class Element(NamedTuple):
    """A member of an object or an item of an array, with its offsets in that value's JSON."""

    key: str | int
    start: int
    """The start of the member's name; for an item the same as *value*."""
    value: int
    """The start of the value."""
    end: int


def elements(body: bytes) -> Iterator[Element]:
    """Yield the elements of an object or an array, in order.

    Raises ValueError if *body* is not JSON, or if a name is repeated.
    """
    if body.startswith(b"{"):
        yield from _members_of(body)
    elif body.startswith(b"["):
        yield from _items_of(body)


def _members_of(body: bytes) -> Iterator[Element]:
    at = 1
    for key, value in _members.decode(body).items():
        string = _STRING.match(body, _skip(_BEFORE_NAME, body, at))
        if string is None or msgspec.json.decode(string[0]) != key:
            raise ValueError("a name is repeated: the values are not in the order of the text")
        start = _skip(_BEFORE_VALUE, body, string.end())
        at = start + len(bytes(value))
        yield Element(key, string.start(), start, at)


def _items_of(body: bytes) -> Iterator[Element]:
    at = 1
    for index, value in enumerate(_items.decode(body)):
        start = _skip(_BEFORE_NAME, body, at)
        at = start + len(bytes(value))
        yield Element(index, start, start, at)


def _find_element(body: bytes, name: str) -> tuple[int, int] | None:
    try:
        for element in elements(body):
            if str(element.key) == name:
                return element.value, element.end
    except (ValueError, RecursionError):
        return None
    return None


def _skip(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = pattern.match(body, at)
    return found.end() if found else at


def excerpt(body: bytes, span: tuple[int, int], width: int) -> tuple[int, str, int, int]:
    """Return the line that the value at *span* begins in, cut to *width* characters.

    The result is the number of lines before it, its text, and the value's column and length.
    """
    start, end = span
    lines_before = body.count(b"\n", 0, start)
    line_start = body.rfind(b"\n", 0, start) + 1
    line = body[line_start:].partition(b"\n")[0]
    column = _char_count(line[: start - line_start])
    length = _char_count(line[start - line_start : end - line_start])
    whole = line.decode("utf-8", "replace")
    left = max(0, min(column - width // 4, len(whole) - width))
    text = whole[left : left + width]
    if left:
        text = "…" + text[1:]
    if left + width < len(whole):
        text = text[:-1] + "…"
    return lines_before, text, column - left, max(1, min(length, len(text) - column + left))


def _char_count(text: bytes) -> int:
    return len(text.decode("utf-8", "replace"))
