"""Finds values in JSON text, writes changed values into it, and replaces a file with its
repaired copy. Unchanged parts are copied byte for byte.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from shutil import copyfileobj
from typing import IO, Any, NamedTuple

import msgspec

from ...errors import AnswerbackError
from .inputs import decode_or_no_value

_BEFORE_NAME = re.compile(rb"[\s,]*")
_BEFORE_VALUE = re.compile(rb"[\s:]*")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_located_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


def locate(body: bytes, pointer: str) -> tuple[int, int]:
    """Return the start and end offsets of the value at *pointer*, or of the innermost value found
    on the way to it."""
    start = len(body) - len(body.lstrip())
    end = len(body.rstrip())
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        inside = elements(body[start:end])
        try:
            found = next((each for each in inside if str(each.key) == name), None)
        except (ValueError, RecursionError):
            break
        if found is None:
            break
        start, end = start + found.value, start + found.end
    return start, end


class Element(NamedTuple):
    """A member of an object or an item of an array, with its offsets in that value's JSON."""

    key: str | int
    start: int
    """The start of the member's name; for an item, the same as *value*."""
    value: int
    """The start of the value."""
    end: int


def elements(body: bytes) -> Iterator[Element]:
    """Yield the elements of an object or an array, in order.

    Raises ValueError if *body* is not JSON, or if a name is repeated.
    """
    at = 1
    if body.startswith(b"{"):
        for key, value in _located_members.decode(body).items():
            string = _STRING.match(body, _skip(_BEFORE_NAME, body, at))
            if string is None or msgspec.json.decode(string[0]) != key:
                raise ValueError("a name is repeated, so the values are not in text order")
            start = _skip(_BEFORE_VALUE, body, string.end())
            at = start + len(bytes(value))
            yield Element(key, string.start(), start, at)
    elif body.startswith(b"["):
        for index, value in enumerate(_items.decode(body)):
            start = _skip(_BEFORE_NAME, body, at)
            at = start + len(bytes(value))
            yield Element(index, start, start, at)


def _skip(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = pattern.match(body, at)
    return found.end() if found else at


def excerpt(body: bytes, span: tuple[int, int], width: int) -> tuple[int, str, int, int]:
    """Return the line where the value at *span* begins, truncated to *width* characters.

    The result is the number of lines before it, its text, and the value's column and length.
    """
    start, end = span
    lines_before = body.count(b"\n", 0, start)
    line_start = body.rfind(b"\n", 0, start) + 1
    line = body[line_start:].partition(b"\n")[0]
    column = _char_count(line[: start - line_start])
    length = _char_count(line[start - line_start : end - line_start])
    full = line.decode("utf-8", "replace")
    left = max(0, min(column - width // 4, len(full) - width))
    text = full[left : left + width]
    if left:
        text = "…" + text[1:]
    if left + width < len(full):
        text = text[:-1] + "…"
    return lines_before, text, column - left, max(1, min(length, len(text) - column + left))


def _char_count(text: bytes) -> int:
    return len(text.decode("utf-8", "replace"))


_FIRST_INDENT = re.compile(rb"(\r?\n)([ \t]*)\S")
_LAST_INDENT = re.compile(rb"\n([ \t]*)\S[^\n]*\Z")
_SPACED_COLON = re.compile(rb'(?<!\\)"\s*:\s')


class _Layout(NamedTuple):
    """The layout of JSON text, used to format new values like the old ones."""

    newline: str
    """A line break and the margin shared by all lines; empty if the text is a single line."""
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
        """Return a comma and the whitespace between it and the next member."""
        if self.newline:
            return ("," + self.newline + self.indent * depth).encode()
        return self.inline

    @property
    def inline(self) -> bytes:
        return b"," if self.colon == ":" else b", "


def patched(body: bytes, value: Any) -> bytes:
    """Return the JSON of *value*, reusing the bytes of *body* wherever the values are equal."""
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
        indexes = _old_indexes(old, new)
        if indexes is not None:
            items = [
                (index, _element(body, olds[index], old[index], each, layout, depth))
                for index, each in zip(indexes, new, strict=True)
            ]
            return _joined(body, olds, items, layout, depth)
    return layout.write(new, depth)


_NewElements = list[tuple[int, bytes]]
"""The new value's elements: the index of the old element (-1 for a new one), and the bytes."""


def _members(
    body: bytes, olds: list[Element], old: Any, new: Any, layout: _Layout, depth: int
) -> _NewElements:
    remaining = [
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
    return remaining + added


def _element(
    body: bytes, element: Element, old: Any, new: Any, layout: _Layout, depth: int
) -> bytes:
    value = _patched(body[element.value : element.end], old, new, layout, depth + 1)
    return body[element.start : element.value] + value


def _old_indexes(old: list[Any], new: list[Any]) -> list[int] | None:
    """Return the index of each new item among the old ones, or None if an item was added."""
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
    # A value on a single line stays on a single line, even inside an indented document.
    between = layout.between(depth + 1) if b"\n" in body else layout.inline
    gaps = [*gaps, gaps[-1] if gaps else between]
    joined = opening + news[0][1]
    for index, element in news[1:]:
        # Added elements (index -1) come last, with the separator of the last old element.
        joined += gaps[index - 1 if index > 0 else -1] + element
    return joined + closing


class CannotRewrite(AnswerbackError):
    """The file must not be repaired, or was changed while it was being read."""

    code = "CANNOT_REWRITE"


def rewrite_file(
    path: str, source: IO[bytes], write: Callable[[IO[bytes]], bool], *, force: bool = False
) -> None:
    """Call *write* with a new file in the same folder, which replaces *path* if it returns True.

    *source* is the open file, not yet read. Raises CannotRewrite.
    """
    target = os.path.realpath(path)
    before = os.fstat(source.fileno())
    if not force:
        # Root may write to every file, so check the permission bits too.
        is_read_only = not before.st_mode & 0o222 or not os.access(target, os.W_OK)
        reason = "is read-only" if is_read_only else ""
        if hasattr(os, "geteuid") and before.st_uid != os.geteuid():
            reason = "belongs to another user"
        if reason:
            raise CannotRewrite(f"{path} {reason}, and was not repaired; --force repairs it anyway")
    # Choose the name before creating the file, so that an interrupt at any point deletes it.
    name = os.path.join(os.path.dirname(target), f".answerback-{os.urandom(8).hex()}")
    try:
        with open(name, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as copy:
            is_changed = write(copy)
        if is_changed:
            if _version(os.stat(target)) != _version(before):
                raise CannotRewrite(f"{path} changed while it was being read, and was not repaired")
            _replace(target, name, before)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _replace(target: str, copy: str, before: os.stat_result) -> None:
    if before.st_nlink > 1:
        # Write in place, because replacing the file would break its hard links. If writing fails
        # halfway, the target is incomplete, so the copy is kept.
        try:
            with open(copy, "rb") as source, open(target, "r+b") as file:
                copyfileobj(source, file)
                file.truncate()
        except OSError as exc:
            saved = f"{target}.repaired"
            os.replace(copy, saved)
            message = f"{target}: {exc.strerror}; {saved} has its full content"
            raise CannotRewrite(message) from None
        return
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # Only root can preserve another user's ownership.
            os.chown(copy, before.st_uid, before.st_gid)
    os.chmod(copy, stat.S_IMODE(before.st_mode))
    os.replace(copy, target)
