"""Edits JSON text that people wrote: a member is added or replaced, every other byte stays.

Comments (`//`, `/* */`) and commas before a closing brace, which VS Code allows, are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..core.json_value import Json


_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r"[^\s,:\[\]{}/]+")
_PUNCTUATION = re.compile(r"[,:\[\]{}]")


class CannotEdit(ValueError):
    """The text is not JSON, or a part that must be an object is something else."""


class Member(NamedTuple):
    """A member of an object: the places where its name begins and where its value lies."""

    name: str
    start: int
    value: int
    end: int


class Span(NamedTuple):
    """An object in a text, from its opening brace to behind its closing one."""

    start: int
    end: int
    members: tuple[Member, ...]
    has_last_comma: bool


def parse(text: str) -> Json:
    """The value of a JSON text with comments; raises CannotEdit."""
    tokens = [text[start:end] for start, end in _tokens(text)]
    kept = [
        token
        for at, token in enumerate(tokens)
        if not (token == "," and at + 1 < len(tokens) and tokens[at + 1] in ("}", "]"))
    ]
    try:
        return json.loads(" ".join(kept))
    except ValueError:
        line = _error_line(text)
        raise CannotEdit(f"it is not JSON{line}") from None


def with_member(text: str, path: tuple[str, str], value: Json) -> str:
    """The text with the member *path*, such as `("servers", "notes")`; raises CannotEdit."""
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps({path[0]: {path[1]: value}}, indent=2, ensure_ascii=False) + "\n"
    outer = _object_at(text, _SPACE.match(text, 0).end())  # type: ignore[union-attr]  # "" matches
    holder = _find(outer, path[0])
    if holder is None:
        return _added(text, outer, path[0], {path[1]: value})
    inner = _object_at(text, holder.value)
    member = _find(inner, path[1])
    if member is None:
        return _added(text, inner, path[1], value)
    if _has_comment(text[member.value : member.end]):
        raise CannotEdit(f"the entry {path[1]!r} has comments, which would be lost")
    written = _written(text, value, _indent_at(text, member.start))
    return text[: member.value] + written + text[member.end :]


def _added(text: str, place: Span, name: str, value: Json) -> str:
    """The text with a new last member of an object."""
    closing = place.end - 1
    outer_indent = _indent_at(text, place.start)
    if place.members:
        indent = _indent_at(text, place.members[-1].start)
        if indent == outer_indent:  # The object is written in one line.
            indent += _unit(text)
    else:
        indent = outer_indent + _unit(text)
    line = "\r\n" if "\r\n" in text else "\n"
    member = f"{json.dumps(name, ensure_ascii=False)}: {_written(text, value, indent)}"
    body = text[place.start + 1 : closing]
    if place.members and not place.has_last_comma:
        last = place.members[-1].end
        body = text[place.start + 1 : last] + "," + text[last:closing]
    before = text[: place.start + 1] + body.rstrip()
    return f"{before}{line}{indent}{member}{line}{outer_indent}{text[closing:]}"


def _written(text: str, value: Json, indent: str) -> str:
    line = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{line}{indent}".join(lines)


def _unit(text: str) -> str:
    """The indentation of one level, as the first indented line has it."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _indent_at(text: str, place: int) -> str:
    """The white space at the start of the line with *place*."""
    start = text.rfind("\n", 0, place) + 1
    found = re.compile(r"[ \t]*").match(text, start)
    return found[0] if found else ""


def _has_comment(text: str) -> bool:
    return "//" in _STRING.sub("", text) or "/*" in _STRING.sub("", text)


def _find(place: Span, name: str) -> Member | None:
    found = [member for member in place.members if member.name == name]
    if len(found) > 1:
        raise CannotEdit(f"it has {name!r} twice")
    return found[0] if found else None


def _object_at(text: str, start: int) -> Span:
    """The object that begins at *start*, with its members."""
    if text[start : start + 1] != "{":
        raise CannotEdit("an object was expected where it has something else")
    members: list[Member] = []
    name: tuple[int, int] | None = None
    value: int | None = None
    depth, last = 0, start
    for begin, end in _tokens(text, start):
        token = text[begin:end]
        closes = token in "}]"
        if depth == 1 and (closes or token == ",") and name is not None and value is not None:
            members.append(Member(json.loads(text[slice(*name)]), name[0], value, last))
            name = value = None
            if token == ",":
                continue
        elif depth == 1 and name is None and token[0] == '"':
            name = (begin, end)
        elif depth == 1 and name is not None and value is None and token != ":":
            value = begin
        depth += (token in "{[") - closes
        if depth == 0:
            has_comma = bool(members) and _follows_comma(text, members[-1].end)
            return Span(start, end, tuple(members), has_comma)
        last = end
    raise CannotEdit("it ends in the middle of an object")


def _follows_comma(text: str, end: int) -> bool:
    found = _SPACE.match(text, end)
    return found is not None and text[found.end() : found.end() + 1] == ","


def _tokens(text: str, place: int = 0) -> Iterator[tuple[int, int]]:
    """The places of strings, numbers, words, brackets, commas and colons; raises CannotEdit."""
    while True:
        space = _SPACE.match(text, place)
        place = place if space is None else space.end()
        if place == len(text):
            return
        for pattern in (_STRING, _PUNCTUATION, _SCALAR):
            if found := pattern.match(text, place):
                yield found.span()
                place = found.end()
                break
        else:
            raise CannotEdit(f"it is not JSON (line {text.count(chr(10), 0, place) + 1})")


def _error_line(text: str) -> str:
    """The place of the error, if the text has no comments that would move it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as exc:
        return f" (line {exc.lineno}: {exc.msg})"
    return ""
