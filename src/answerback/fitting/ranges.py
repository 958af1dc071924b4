"""Ranges of a stored reply: some items of a list, or some lines or characters of a string.

All ranges of a list or a string add up to the full value, because items keep their exact JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from ..core.author_errors import did_you_mean, similar_names
from ..errors import InvalidInput

Unit: TypeAlias = Literal["items", "lines", "characters"]
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(str)
_NAMES = ("path", "offset", "limit", "unit")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_SHOWN = 20
"""How many member names an error lists."""


class ReplyPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a stored reply; by default all of it."""

    path: str = ""
    """The list or string, in the format of `Cut.path`: names and indexes separated by dots."""
    offset: int = 0
    limit: int | None = None
    """None means up to the end."""
    unit: Literal["lines", "characters"] = "characters"
    """The unit of *offset* and *limit* in a string; in a list they count items."""

    @property
    def is_range(self) -> bool:
        return self.offset != 0 or self.limit is not None


def part_of(query: str) -> ReplyPart:
    """Return the part named by a URI's query; raises InvalidInput for an invalid query."""
    given = parse_qsl(query, keep_blank_values=True)
    for name, value in given:
        if name not in _NAMES:
            hint = did_you_mean(similar_names(name, _NAMES)) or f"write {', '.join(_NAMES)}"
            raise InvalidInput(f"a range has no {name!r}", hint=hint)
        if name in ("offset", "limit") and not _WHOLE_NUMBER.fullmatch(value):
            raise InvalidInput(f"{name}={value!r} should be a whole number")
        if name == "unit" and value not in ("lines", "characters"):
            raise InvalidInput(f"unit={value!r} should be 'lines' or 'characters'")
    return msgspec.convert(dict(given), ReplyPart, strict=False)


class Range(msgspec.Struct, frozen=True):
    """The content of a part."""

    text: str
    mime: str = "application/json"
    returned: int = 0
    total: int = 0
    unit: Unit | None = None
    """None if the part is not a range."""


def range_of(body: bytes, part: ReplyPart) -> Range:
    """Return a part of *body*, which is JSON; raises InvalidInput if it has no such part."""
    found = find(body, part.path)
    first = _first(found)
    if not part.is_range:
        if part.path and first == '"':
            return Range(_text.decode(found), "text/plain")
        return Range(bytes(found).decode())
    if first == "[":
        items = _items.decode(found)
        chosen = items[_bounds(len(items), part, "items")]
        listed = b"[%b]" % b",".join(map(bytes, chosen))
        return Range(
            listed.decode(),
            returned=len(chosen),
            total=len(items),
            unit="items",
        )
    if first != '"':
        kind = "an object" if first == "{" else "one value"
        raise InvalidInput(
            f"offset and limit need a list or a string, but {_named(part.path)} is {kind}",
            hint="give the path of a list or a string, or leave out offset and limit",
        )
    text = _text.decode(found)
    pieces: Sequence[str] = split_lines(text) if part.unit == "lines" else text
    taken = pieces[_bounds(len(pieces), part, part.unit)]
    return Range(
        "".join(taken),
        "text/plain",
        returned=len(taken),
        total=len(pieces),
        unit=part.unit,
    )


def split_lines(text: str) -> list[str]:
    """Return the lines of a string, each with its line feed, so that joining them restores it."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _bounds(total: int, part: ReplyPart, unit: Unit) -> slice:
    if not 0 <= part.offset <= total:
        raise InvalidInput(
            f"offset={part.offset} should be from 0 to {total}:"
            f" {_named(part.path)} has {total} {unit}"
        )
    if part.limit is None:
        return slice(part.offset, total)
    if part.limit < 1:
        raise InvalidInput(f"limit={part.limit} should be at least 1")
    return slice(part.offset, part.offset + part.limit)


def find(body: bytes, path: str) -> msgspec.Raw:
    """Return the JSON at *path*; a name may itself contain dots."""
    value = msgspec.Raw(body)
    for found in _all_at(value, path):
        return found
    known: list[str] = []
    if _first(value) == "{":
        known = list(_members.decode(value))
    hint = did_you_mean(similar_names(path, known))
    if not hint and known:
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        hint = f"the reply has {', '.join(map(repr, known[:_SHOWN]))}{more}"
    raise InvalidInput(f"the reply has nothing at path={path!r}", hint=hint or None)


def _all_at(value: msgspec.Raw, path: str) -> Iterator[msgspec.Raw]:
    if not path:
        yield value
        return
    first = _first(value)
    if first == "{":
        for name, member in _members.decode(value).items():
            if path == name:
                yield member
            elif path.startswith(f"{name}."):
                yield from _all_at(member, path[len(name) + 1 :])
    elif first == "[":
        index, _, rest = path.partition(".")
        items = _items.decode(value)
        if index.isascii() and index.isdigit() and len(index) < 10 and int(index) < len(items):
            yield from _all_at(items[int(index)], rest)


def _first(value: msgspec.Raw) -> str:
    """Return the first character of a JSON value, which shows its type."""
    return next(char for char in map(chr, memoryview(value)) if char not in " \t\r\n")


def _named(path: str) -> str:
    return repr(path) if path else "the reply"
