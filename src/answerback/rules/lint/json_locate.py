"""Where in a JSON text the value stands that a pointer leads to."""

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
    """The start and the end of the value; of the nearest thing around it that can be found."""
    start = len(body) - len(body.lstrip())
    end = len(body.rstrip())
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = _step(body[start:end], name)
        if found is None:
            break
        start, end = start + found[0], start + found[1]
    return start, end


class Part(NamedTuple):
    """A member of an object or an item of an array, and where it stands in the JSON of that."""

    key: str | int
    start: int
    """Where its name begins; of an item, the item itself."""
    value: int
    end: int


def parts(body: bytes) -> Iterator[Part]:
    """Those of an object or an array, in order; raises ValueError where they cannot be told."""
    if body.startswith(b"{"):
        yield from _members_of(body)
    elif body.startswith(b"["):
        yield from _items_of(body)


def _members_of(body: bytes) -> Iterator[Part]:
    at = 1
    for key, value in _members.decode(body).items():
        string = _STRING.match(body, _skip(_BEFORE_NAME, body, at))
        if string is None or msgspec.json.decode(string[0]) != key:
            raise ValueError("a name that stands there twice: values are not in the text's order")
        begins = _skip(_BEFORE_VALUE, body, string.end())
        at = begins + len(bytes(value))
        yield Part(key, string.start(), begins, at)


def _items_of(body: bytes) -> Iterator[Part]:
    at = 1
    for number, value in enumerate(_items.decode(body)):
        begins = _skip(_BEFORE_NAME, body, at)
        at = begins + len(bytes(value))
        yield Part(number, begins, begins, at)


def _step(body: bytes, name: str) -> tuple[int, int] | None:
    try:
        for part in parts(body):
            if str(part.key) == name:
                return part.value, part.end
    except (ValueError, RecursionError):
        return None
    return None


def _skip(what: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = what.match(body, at)
    return found.end() if found else at


def excerpt(body: bytes, span: tuple[int, int], width: int) -> tuple[int, str, int, int]:
    """The line that a value begins in, cut to a width, and where in it the value stands.

    Gives the number of lines before it, the text, and the column and length of the value.
    """
    start, end = span
    before = body.count(b"\n", 0, start)
    head = body.rfind(b"\n", 0, start) + 1
    line = body[head:].partition(b"\n")[0]
    column = _letters(line[: start - head])
    length = _letters(line[start - head : end - head])
    whole = line.decode("utf-8", "replace")
    left = max(0, min(column - width // 4, len(whole) - width))
    text = whole[left : left + width]
    if left:
        text = "…" + text[1:]
    if left + width < len(whole):
        text = text[:-1] + "…"
    return before, text, column - left, max(1, min(length, len(text) - column + left))


def _letters(part: bytes) -> int:
    return len(part.decode("utf-8", "replace"))
