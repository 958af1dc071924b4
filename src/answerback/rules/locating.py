"""Where in a JSON text the value stands that a pointer leads to."""

from __future__ import annotations

import re

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


def _step(body: bytes, name: str) -> tuple[int, int] | None:
    try:
        if body.startswith(b"{"):
            return _member(body, name)
        return _item(body, int(name)) if body.startswith(b"[") else None
    except (ValueError, RecursionError):
        return None


def _member(body: bytes, name: str) -> tuple[int, int] | None:
    at = 1
    for key, value in _members.decode(body).items():
        string = _STRING.match(body, _skip(_BEFORE_NAME, body, at))
        if string is None or msgspec.json.decode(string[0]) != key:
            # A name that stands there twice: the order of values is not that of the text.
            return None
        at = _skip(_BEFORE_VALUE, body, string.end())
        if key == name:
            return at, at + len(bytes(value))
        at += len(bytes(value))
    return None


def _item(body: bytes, index: int) -> tuple[int, int] | None:
    at = 1
    for number, value in enumerate(_items.decode(body)):
        at = _skip(_BEFORE_NAME, body, at)
        if number == index:
            return at, at + len(bytes(value))
        at += len(bytes(value))
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
