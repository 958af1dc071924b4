"""JSON with some of it changed, and all the rest as it was written, byte for byte."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from .json_locate import Part, parts
from .lines import loosely

_FIRST_LINE = re.compile(rb"(\r?\n)([ \t]*)\S")
_LAST_LINE = re.compile(rb"\n([ \t]*)\S[^\n]*\Z")
_SPACED = re.compile(rb'(?<!\\)"\s*:\s')


class _Layout(NamedTuple):
    """How a text is laid out, so that what is new can be like what is old."""

    newline: str
    """What ends a line, and what every line is moved in by; empty if there is one line only."""
    indent: str
    colon: str
    ascii: bool

    def write(self, value: Any, depth: int) -> bytes:
        comma = "," if self.newline or self.colon == ":" else ", "
        text = json.dumps(
            value,
            ensure_ascii=self.ascii,
            indent=self.indent if self.newline else None,
            separators=(comma, self.colon),
        )
        text = text.replace("\n", self.newline + self.indent * depth)
        return text.encode("utf-8", "surrogatepass")

    def between(self, depth: int) -> bytes:
        """A comma, and what stands between it and the next member."""
        if self.newline:
            return ("," + self.newline + self.indent * depth).encode()
        return self.inline

    @property
    def inline(self) -> bytes:
        return b"," if self.colon == ":" else b", "


def spliced(body: bytes, value: Any) -> bytes:
    """The JSON of *value*: in the bytes of *body*, wherever that says the same."""
    try:
        return _spliced(body, loosely(body), value, _layout(body), 0)
    except RecursionError:
        return msgspec.json.encode(value)


def _layout(body: bytes) -> _Layout:
    escaped = body.isascii() and b"\\u" in body
    colon = ": " if _SPACED.search(body) else ":"
    first, last = _FIRST_LINE.search(body), _LAST_LINE.search(body)
    if first is None or last is None:
        return _Layout("", "", colon, escaped)
    margin = last[1].decode()
    indent = first[2].decode().removeprefix(margin) or "  "
    return _Layout(first[1].decode() + margin, indent, colon, escaped)


def _spliced(body: bytes, old: Any, new: Any, layout: _Layout, depth: int) -> bytes:
    if json.dumps(old) == json.dumps(new):
        return body
    try:
        there = list(parts(body))
    except (ValueError, RecursionError):
        there = []
    if there and isinstance(old, dict) and isinstance(new, dict):
        return _joined(body, there, _members(body, there, old, new, layout, depth), layout, depth)
    if there and isinstance(old, list) and isinstance(new, list):
        kept = _kept(old, new)
        if kept is not None:
            items = [
                (number, _inner(body, there[number], old[number], each, layout, depth))
                for number, each in zip(kept, new, strict=True)
            ]
            return _joined(body, there, items, layout, depth)
    return layout.write(new, depth)


_Pieces = list[tuple[int, bytes]]
"""What is to stand there: the number of the part that it was, or -1, and its bytes."""


def _members(
    body: bytes, there: list[Part], old: Any, new: Any, layout: _Layout, depth: int
) -> _Pieces:
    kept = [
        (number, _inner(body, part, old[part.key], new[part.key], layout, depth))
        for number, part in enumerate(there)
        if part.key in new
    ]
    colon = layout.colon.encode()
    added = [
        (-1, json.dumps(name, ensure_ascii=layout.ascii).encode() + colon + value)
        for name, value in ((name, layout.write(new[name], depth + 1)) for name in new)
        if name not in old
    ]
    return kept + added


def _inner(body: bytes, part: Part, old: Any, new: Any, layout: _Layout, depth: int) -> bytes:
    value = _spliced(body[part.value : part.end], old, new, layout, depth + 1)
    return body[part.start : part.value] + value


def _kept(old: list[Any], new: list[Any]) -> list[int] | None:
    """Which of the old items the new ones are, if none was added."""
    if len(old) == len(new):
        return list(range(len(old)))
    numbers, at = list[int](), 0
    for each in new:
        while at < len(old) and old[at] != each:
            at += 1
        numbers.append(at)
        at += 1
    return numbers if at <= len(old) else None


def _joined(body: bytes, there: list[Part], pieces: _Pieces, layout: _Layout, depth: int) -> bytes:
    """The pieces between the brackets of old, each with what stood before it."""
    opening, closing = body[: there[0].start], body[there[-1].end :]
    if not pieces:
        return opening[:1] + closing[-1:]
    gaps = [body[one.end : other.start] for one, other in pairwise(there)]
    # What stands in one line stays in one line, whatever is around it.
    between = layout.between(depth + 1) if b"\n" in body else layout.inline
    gaps = [*gaps, gaps[-1] if gaps else between]
    whole = opening + pieces[0][1]
    for number, piece in pieces[1:]:
        # What was not there before comes last, where it counts as the part after the last.
        whole += gaps[number - 1 if number > 0 else -1] + piece
    return whole + closing
