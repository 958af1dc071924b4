"""Edits handwritten JSON text: a member is added or replaced, every other byte stays.

Comments (`//`, `/* */`) and commas before a closing brace, which VS Code allows, are kept: the
members are located in a copy of the text that has blanks in their place.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ..core.json_value import Json
from ..rules.lint.rewriting import Element, elements

_STRING = rb'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(_STRING + rb"|//[^\n]*|/\*.*?\*/|\A\xef\xbb\xbf", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + rb"|,(?=\s*[}\]])")


class CannotEdit(ValueError):
    """The text is not JSON, or a part that must be an object is something else."""


class _Object(NamedTuple):
    """An object in a text, from its opening brace to just after its closing one."""

    start: int
    end: int
    members: dict[str | int, Element]


def parse(text: str) -> Json:
    """Read a JSON text with comments; raises CannotEdit."""
    try:
        return json.loads(_plain(_without_comments(text.encode())), object_pairs_hook=_members_once)
    except json.JSONDecodeError as exc:
        raise CannotEdit(f"it is not JSON (line {exc.lineno}: {exc.msg})") from None
    except CannotEdit:
        raise
    except RecursionError:
        raise CannotEdit("it is nested too deeply") from None
    except ValueError:
        raise CannotEdit("it has a number that is too long") from None


def _members_once(pairs: list[tuple[str, Json]]) -> Json:
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise CannotEdit(f"it has {twice[0]!r} twice")
    return dict(pairs)


def with_member(text: str, path: tuple[str, str], value: Json) -> str:
    """Return the text with the member *path*, such as `("servers", "notes")`; raises CannotEdit."""
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps({path[0]: {path[1]: value}}, indent=2, ensure_ascii=False) + "\n"
    raw = text.encode()
    plain = _plain(_without_comments(raw))
    outer = _object_at(plain, len(plain) - len(plain.lstrip()), len(plain.rstrip()))
    holder = outer.members.get(path[0])
    if holder is None:
        return _added(raw, outer, path[0], {path[1]: value}).decode()
    inner = _object_at(plain, outer.start + holder.value, outer.start + holder.end)
    member = inner.members.get(path[1])
    if member is None:
        return _added(raw, inner, path[1], value).decode()
    start, end = inner.start + member.value, inner.start + member.end
    if plain[start:end] != raw[start:end]:
        raise CannotEdit(f"the entry {path[1]!r} has comments, which would be lost")
    written = _written(raw, value, _indent_at(raw, inner.start + member.start))
    return (raw[:start] + written + raw[end:]).decode()


def _without_comments(raw: bytes) -> bytes:
    """Return the text with blanks in place of comments; lines and offsets stay."""

    def blank(found: re.Match[bytes]) -> bytes:
        return found[0] if found[0][:1] == b'"' else re.sub(rb"[^\n]", b" ", found[0])

    return _COMMENT.sub(blank, raw)


def _plain(raw: bytes) -> bytes:
    """Return the text with blanks in place of trailing commas."""
    return _LAST_COMMA.sub(lambda found: b" " if found[0] == b"," else found[0], raw)


def _object_at(plain: bytes, start: int, end: int) -> _Object:
    if plain[start : start + 1] != b"{":
        raise CannotEdit("an object was expected where it has something else")
    try:
        return _Object(start, end, {each.key: each for each in elements(plain[start:end])})
    except ValueError:  # NaN, for one.
        raise CannotEdit("its form is not understood") from None


def _added(raw: bytes, place: _Object, name: str, value: Json) -> bytes:
    """Return the text with a new last member of an object."""
    closing = place.end - 1
    outer_indent = _indent_at(raw, place.start)
    body = raw[place.start + 1 : closing]
    indent = outer_indent + _unit(raw)
    if place.members:
        last = list(place.members.values())[-1]
        own = _indent_at(raw, place.start + last.start)
        # If it is the object's own, the object is written in one line.
        indent = indent if own == outer_indent else own
        if not re.match(rb"\s*,", _without_comments(raw)[place.start + last.end :]):
            body = body[: last.end - 1] + b"," + body[last.end - 1 :]
    line = _line_break(raw)
    member = json.dumps(name, ensure_ascii=False).encode() + b": " + _written(raw, value, indent)
    before = raw[: place.start + 1] + body.rstrip()
    return before + line + indent + member + line + outer_indent + raw[closing:]


def _written(raw: bytes, value: Json, indent: bytes) -> bytes:
    text = json.dumps(value, indent=_unit(raw).decode(), ensure_ascii=False)
    return text.encode().replace(b"\n", _line_break(raw) + indent)


def _line_break(raw: bytes) -> bytes:
    return b"\r\n" if b"\r\n" in raw else b"\n"


def _unit(raw: bytes) -> bytes:
    """Return one level's indentation, from the first indented line."""
    found = re.search(rb"\n([ \t]+)\S", raw)
    return found[1] if found else b"  "


def _indent_at(raw: bytes, place: int) -> bytes:
    """Return the white space at the start of the line with *place*."""
    found = re.compile(rb"[ \t]*").match(raw, raw.rfind(b"\n", 0, place) + 1)
    return found[0] if found else b""
