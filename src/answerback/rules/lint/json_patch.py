"""Changes values in a JSON text, and keeps every other byte as it was."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from .json_in_logs import decode_or_no_value
from .json_locate import Element, elements

_FIRST_INDENT = re.compile(rb"(\r?\n)([ \t]*)\S")
_LAST_INDENT = re.compile(rb"\n([ \t]*)\S[^\n]*\Z")
_SPACED_COLON = re.compile(rb'(?<!\\)"\s*:\s')


class _Layout(NamedTuple):
    """The layout of a JSON text, so that new values are written like the old ones."""

    newline: str
    """A line break and the margin of every line; empty if the text is a single line."""
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
        """Return a comma, and the blanks between it and the next member."""
        if self.newline:
            return ("," + self.newline + self.indent * depth).encode()
        return self.inline

    @property
    def inline(self) -> bytes:
        return b"," if self.colon == ":" else b", "


def patched(body: bytes, value: Any) -> bytes:
    """Return the JSON of *value*, with the bytes of *body* wherever the values are equal."""
    try:
        return _patched(body, decode_or_no_value(body), value, _layout(body), 0)
    except RecursionError:
        return msgspec.json.encode(value)


def _layout(body: bytes) -> _Layout:
    escaped = body.isascii() and b"\\u" in body
    colon = ": " if _SPACED_COLON.search(body) else ":"
    first, last = _FIRST_INDENT.search(body), _LAST_INDENT.search(body)
    if first is None or last is None:
        return _Layout("", "", colon, escaped)
    margin = last[1].decode()
    indent = first[2].decode().removeprefix(margin) or "  "
    return _Layout(first[1].decode() + margin, indent, colon, escaped)


def _patched(body: bytes, old: Any, new: Any, layout: _Layout, depth: int) -> bytes:
    if json.dumps(old) == json.dumps(new):
        return body
    try:
        olds = list(elements(body))
    except (ValueError, RecursionError):
        olds = []
    if olds and isinstance(old, dict) and isinstance(new, dict):
        return _joined(body, olds, _members(body, olds, old, new, layout, depth), layout, depth)
    if olds and isinstance(old, list) and isinstance(new, list):
        kept = _kept_indexes(old, new)
        if kept is not None:
            items = [
                (index, _element(body, olds[index], old[index], each, layout, depth))
                for index, each in zip(kept, new, strict=True)
            ]
            return _joined(body, olds, items, layout, depth)
    return layout.write(new, depth)


_NewElements = list[tuple[int, bytes]]
"""The elements of the new value: the index of the old element, or -1 for an added one, and the
bytes."""


def _members(
    body: bytes, olds: list[Element], old: Any, new: Any, layout: _Layout, depth: int
) -> _NewElements:
    kept = [
        (index, _element(body, each, old[each.key], new[each.key], layout, depth))
        for index, each in enumerate(olds)
        if each.key in new
    ]
    colon = layout.colon.encode()
    added = [
        (-1, json.dumps(name, ensure_ascii=layout.ascii).encode() + colon + value)
        for name, value in ((name, layout.write(new[name], depth + 1)) for name in new)
        if name not in old
    ]
    return kept + added


def _element(
    body: bytes, element: Element, old: Any, new: Any, layout: _Layout, depth: int
) -> bytes:
    value = _patched(body[element.value : element.end], old, new, layout, depth + 1)
    return body[element.start : element.value] + value


def _kept_indexes(old: list[Any], new: list[Any]) -> list[int] | None:
    """Return the index of each new item among the old ones; None if an item was added."""
    if len(old) == len(new):
        return list(range(len(old)))
    indexes, at = list[int](), 0
    for each in new:
        while at < len(old) and old[at] != each:
            at += 1
        indexes.append(at)
        at += 1
    return indexes if at <= len(old) else None


def _joined(
    body: bytes, olds: list[Element], news: _NewElements, layout: _Layout, depth: int
) -> bytes:
    """Return the new elements between the old brackets, each with the old separator before it."""
    opening, closing = body[: olds[0].start], body[olds[-1].end :]
    if not news:
        return opening[:1] + closing[-1:]
    gaps = [body[one.end : other.start] for one, other in pairwise(olds)]
    # A value on a single line stays on a single line, also inside an indented document.
    between = layout.between(depth + 1) if b"\n" in body else layout.inline
    gaps = [*gaps, gaps[-1] if gaps else between]
    whole = opening + news[0][1]
    for index, element in news[1:]:
        # Added elements (index -1) come last, and get the separator of the last old element.
        whole += gaps[index - 1 if index > 0 else -1] + element
    return whole + closing
