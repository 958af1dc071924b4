"""Where in a JSON text the value stands that a pointer leads to."""

from __future__ import annotations

import re

import msgspec

_SPACE = re.compile(rb"[\s,:{]*")
_STRING = re.compile(rb'"(?:[^"\\]+|\\.)*"', re.DOTALL)
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


def _step(body: bytes, name: str) -> tuple[int, int] | None:
    try:
        if body.startswith(b"{"):
            return _member(body, name)
        return _item(body, int(name)) if body.startswith(b"[") else None
    except (ValueError, RecursionError):
        return None


def _member(body: bytes, name: str) -> tuple[int, int] | None:
    at = 0
    for key, value in _members.decode(body).items():
        string = _STRING.match(body, _skip(body, at))
        if string is None or msgspec.json.decode(string[0]) != key:
            # A name that stands there twice: the order of values is not that of the text.
            return None
        at = _skip(body, string.end())
        if key == name:
            return at, at + len(bytes(value))
        at += len(bytes(value))
    return None


def _item(body: bytes, index: int) -> tuple[int, int] | None:
    at = 1
    for number, value in enumerate(_items.decode(body)):
        # Only blanks and a comma stand between two items.
        at += len(body[at:]) - len(body[at:].lstrip(b" \t\r\n,"))
        if number == index:
            return at, at + len(bytes(value))
        at += len(bytes(value))
    return None


def _skip(body: bytes, at: int) -> int:
    found = _SPACE.match(body, at)
    return found.end() if found else at


def excerpt(body: bytes, span: tuple[int, int], width: int) -> tuple[int, str, int, int]:
    """The line that a value begins in, cut to a width, and where in it the value stands.

    Gives the number of lines before it, the text, and the column and length of the value.
    """
    start, end = span
    before = body.count(b"\n", 0, start)
    head = body.rfind(b"\n", 0, start) + 1
    tail = body.find(b"\n", start)
    tail = len(body) if tail < 0 else tail
    end = min(end, tail)
    # As much before the value as there is room for, when its beginning is to be seen.
    room = max(0, width - min(end - start, width * 2 // 3)) // 2
    left = max(head, start - room)
    text = body[left : left + width + 8 * 4].decode("utf-8", "replace")
    column = len(body[left:start].decode("utf-8", "replace"))
    length = len(body[start:end].decode("utf-8", "replace"))
    shown = text[: min(width, len(body[left:tail].decode("utf-8", "replace")))]
    return before, shown, column, max(1, min(length, len(shown) - column))
