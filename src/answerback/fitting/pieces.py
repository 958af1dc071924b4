"""Pieces of a reply: the values in its data and its text, each with the space it needs.

Lists are cut first, starting with the largest: they lose their last items. If that is not enough,
long strings lose their ends too. A non-empty list keeps at least one item, because a client that
ignores the note would mistake an empty list for the full result.

Sizes are in characters of compact JSON. Only values to be cut are decoded; list items stay encoded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ..core.reply import Cut
from ..types.schema_references import follow, target

Schema: TypeAlias = dict[str, Any]

_KINDS = {ord("{"): "object", ord("["): "array", ord('"'): "string"}
_TYPES = _KINDS | {ord("t"): "boolean", ord("f"): "boolean", ord("n"): "null"}
_FIXED_VALUE = frozenset({"const", "enum"})
_FIXED_TEXT = frozenset({"pattern", "format", "contentEncoding", "contentMediaType"})
_MAX_STEPS = 100
"""How many references and unions to follow for one value; a schema may refer to itself."""

decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class ValueSchemas:
    """The schema document for a reply's data; an empty document allows everything."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def resolved(self, schema: object, encoded: bytes) -> Schema | None:
        """Return the keywords for this value, with references resolved and union members chosen.

        Return None if the value must not change, or if a reference cannot be resolved.
        """
        found: Schema = {}
        waiting: list[object] = [schema]
        for _ in range(_MAX_STEPS):
            if not waiting:
                return None if _FIXED_VALUE & found.keys() else found
            each = waiting.pop()
            if each is True:
                continue
            if not isinstance(each, dict):
                return None
            found = {**each, **found}
            if "$ref" in each:
                waiting.append(target(each["$ref"], self._root))
            waiting += each.get("allOf", ())
            for union in ("anyOf", "oneOf"):
                if union in each:
                    waiting.append(self._member(each[union], encoded))
        return None

    def _member(self, members: Iterable[object], encoded: bytes) -> object:
        """Return the first member of a union that a value may match, or None if there is none."""
        names = decode_members(encoded) if encoded.startswith(b"{") else {}
        for member in members:
            found = follow(member, self._root)
            if found is not None and _may_be(found, encoded, names):
                return member
        return None


def _may_be(schema: Schema, encoded: bytes, members: dict[str, msgspec.Raw]) -> bool:
    types = schema.get("type")
    kind = _TYPES.get(encoded[0], "number")
    allowed = [types] if isinstance(types, str) else types
    if allowed is not None and not {kind, "integer" if kind == "number" else kind} & set(allowed):
        return False
    if kind != "object":
        return True
    if not members.keys() >= set(schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is False and not members.keys() <= properties.keys():
        return False
    return all(
        _is_allowed(properties[name], value)
        for name, value in members.items()
        if name in properties
    )


def _is_allowed(schema: object, value: msgspec.Raw) -> bool:
    """Return False if the schema lists all allowed values, as for a tag, and not this one."""
    if not isinstance(schema, dict) or not _FIXED_VALUE & schema.keys():
        return True
    values = [schema["const"]] if "const" in schema else schema["enum"]
    return msgspec.json.decode(value) in values


def least(schema: Schema, keyword: Literal["minItems", "minLength"]) -> int:
    """Return the minimum length that the schema allows."""
    found = schema.get(keyword, 0)
    return int(found) if isinstance(found, int | float) else 0


def item_schema(schema: Schema, index: int) -> object:
    """Return the schema for an item of a list or a tuple."""
    first = schema.get("prefixItems", ())
    items = schema.get("items", True)
    if isinstance(items, list):  # Before 2020-12, a tuple's schemas were in `items`.
        first, items = items, schema.get("additionalItems", True)
    return first[index] if index < len(first) else items


def member_schema(schema: Schema, name: str) -> object:
    """Return the schema for an object's member, or None if only a pattern could match it."""
    properties = schema.get("properties", {})
    if name in properties:
        return properties[name]
    return None if "patternProperties" in schema else schema.get("additionalProperties", True)


UTF8_BYTES = 4
"""The maximum number of bytes in one UTF-8 character."""
LONG_TEXT = 200
"""Strings up to this length are never cut, because they may be names, addresses or keys. A cut
string keeps at least this many characters."""
FEW = 10
"""A list of up to this many items keeps them all if even its first item has to be cut."""
_NEAR = 4
"""A line break is near if cutting there loses at most one in this many characters."""

_DEEPEST = 60
"""Values nested deeper than this are not cut, because pieces recurse as deeply as the data."""

_encode = msgspec.json.Encoder().encode


def characters(encoded: bytes) -> int:
    """Return the number of characters in UTF-8 bytes."""
    return len(encoded) if encoded.isascii() else len(encoded.decode())


class ValuePiece:
    """A value that is never cut."""

    def __init__(self, path: str, encoded: bytes) -> None:
        self.path = path
        self.encoded = encoded
        self.size = characters(encoded)

    @property
    def smallest(self) -> int:
        """The number of characters that remain if everything is cut as far as allowed."""
        return self.size

    def cut(self, room: int, cuts: list[Cut]) -> bytes:
        """Return the value in at most *room* characters if possible; append the cuts to *cuts*."""
        return self.encoded


class CutPlan(msgspec.Struct, frozen=True):
    """Makes the pieces for values nested *depth* levels deep."""

    schemas: ValueSchemas
    cuts_texts: bool = False
    depth: int = 0

    def piece(self, path: str, schema: object, encoded: bytes) -> ValuePiece:
        """Return the piece for a value with *schema*; its JSON must have no leading whitespace."""
        kind = _KINDS.get(encoded[0], "other")
        if kind == "other" or self.depth > _DEEPEST or (kind == "string" and not self.cuts_texts):
            return ValuePiece(path, encoded)
        found = self.schemas.resolved(schema, encoded)
        if found is None:
            return ValuePiece(path, encoded)
        if kind == "string":
            # The beginning of an address or a date is no longer an address or a date.
            is_free = _FIXED_TEXT.isdisjoint(found)
            return TextPiece(path, encoded, found) if is_free else ValuePiece(path, encoded)
        below = CutPlan(self.schemas, self.cuts_texts, self.depth + 1)
        # A list can have any length; a tuple cannot.
        is_tuple = "prefixItems" in found or isinstance(found.get("items"), list)
        if kind == "array" and not is_tuple:
            return ListPiece(path, encoded, found, below)
        return GroupPiece(path, encoded, found, below)


def _path_of(path: str, step: str | int) -> str:
    return f"{path}.{step}" if path else str(step)


class TextPiece(ValuePiece):
    """A string that may be cut, at the end of a line if one is near."""

    def __init__(self, path: str, encoded: bytes, schema: Schema) -> None:
        super().__init__(path, encoded)
        self.text: str = msgspec.json.decode(encoded)
        self._least = min(max(LONG_TEXT, least(schema, "minLength")), len(self.text))

    @property
    def smallest(self) -> int:
        return self._size(self._least)

    def cut(self, room: int, cuts: list[Cut]) -> bytes:
        # Each character takes at least one character of JSON, so a longer string cannot fit.
        lengths = range(min(len(self.text), max(room, 0)) + 1)
        kept = max(bisect_right(lengths, room, key=self._size) - 1, self._least)
        border = self.text.rfind("\n", 0, kept) + 1
        unit: Literal["lines", "characters"] = "characters"
        returned, total = kept, len(self.text)
        if border >= max(kept - kept // _NEAR, self._least):
            kept, unit = border, "lines"
            returned = self.text.count("\n", 0, border)
            # The last line may have no trailing line feed.
            total = self.text.count("\n") + (not self.text.endswith("\n"))
        if kept < len(self.text):
            cuts.append(Cut(self.path, returned, total, unit))
        return _encode(self.text[:kept])

    def _size(self, length: int) -> int:
        return characters(_encode(self.text[:length]))


class ListPiece(ValuePiece):
    """A list that can be cut after any item."""

    def __init__(self, path: str, encoded: bytes, schema: Schema, plan: CutPlan) -> None:
        super().__init__(path, encoded)
        self.items: list[msgspec.Raw] = decode_items(encoded)
        self.least = min(max(1, least(schema, "minItems")), len(self.items))
        self._schema = schema
        self._plan = plan
        self._ends: list[int] = []

    # `Columns` is not stored: only the garbage collector could free the reference cycle.
    @cached_property
    def smallest(self) -> int:
        return Columns({"": self}).smallest

    def cut(self, room: int, cuts: list[Cut]) -> bytes:
        return Columns({"": self}, self._ends).cut(room, cuts)[""]

    def piece(self, index: int) -> ValuePiece:
        schema = item_schema(self._schema, index)
        return self._plan.piece(_path_of(self.path, index), schema, bytes(self.items[index]))


class GroupPiece(ValuePiece):
    """An object or a tuple: it keeps all its members, some of which may be cut."""

    def __init__(self, path: str, encoded: bytes, schema: Schema, plan: CutPlan) -> None:
        super().__init__(path, encoded)
        self._is_object = encoded.startswith(b"{")
        self._schema = schema
        self._plan = plan

    @cached_property
    def _members(self) -> dict[str, ValuePiece]:
        schema = self._schema
        if self._is_object:
            members = decode_members(self.encoded)
            schemas = {name: member_schema(schema, name) for name in members}
        else:
            items = decode_items(self.encoded)
            members = {str(index): item for index, item in enumerate(items)}
            schemas = {name: item_schema(schema, int(name)) for name in members}
        return {
            name: self._plan.piece(_path_of(self.path, name), schemas[name], bytes(value))
            for name, value in members.items()
        }

    @cached_property
    def _cuttable(self) -> list[Cuttable]:
        return cuttable(self._members)

    @property
    def smallest(self) -> int:
        return self.size - sum(each.size - each.smallest for each in self._cuttable)

    def cut(self, room: int, cuts: list[Cut]) -> bytes:
        fixed = self.size - sum(each.size for each in self._cuttable)
        kept = {name: piece.encoded for name, piece in self._members.items()}
        kept |= cut_largest(self._cuttable, room - fixed, cuts)
        values = {name: msgspec.Raw(value) for name, value in kept.items()}
        return _encode(values if self._is_object else list(values.values()))


class Cuttable(Protocol):
    """One or more members that are cut together."""

    @property
    def size(self) -> int: ...

    @property
    def smallest(self) -> int: ...

    def cut(self, room: int, cuts: list[Cut]) -> dict[str, bytes]:
        """Return the members, by name, in at most *room* characters if possible."""


class Single:
    """A member that is cut on its own."""

    def __init__(self, name: str, piece: ValuePiece) -> None:
        self.name = name
        self._piece = piece
        self.size = piece.size
        self.smallest = piece.smallest

    def cut(self, room: int, cuts: list[Cut]) -> dict[str, bytes]:
        return {self.name: self._piece.cut(room, cuts)}


class Columns:
    """Sibling lists of equal length: their items belong together.

    *ends* keeps, from one cut to the next, the characters up to the end of each row of items.
    """

    def __init__(self, lists: Mapping[str, ListPiece], ends: list[int] | None = None) -> None:
        self._lists = lists
        self._ends: list[int] = [] if ends is None else ends
        self._count = max(len(each.items) for each in lists.values())
        self._least = max(each.least for each in lists.values())
        self.size = sum(each.size for each in lists.values())

    @cached_property
    def smallest(self) -> int:
        return self._smallest(self._first(self._least))

    def _first(self, count: int) -> dict[str, list[ValuePiece]]:
        """Return the pieces for the first *count* items of each list."""
        return {
            name: [each.piece(index) for index in range(count)]
            for name, each in self._lists.items()
        }

    def _smallest(self, first: dict[str, list[ValuePiece]]) -> int:
        items = [piece.smallest for pieces in first.values() for piece in pieces]
        return sum(items) + self._punctuation(len(items) // len(first))

    def cut(self, room: int, cuts: list[Cut]) -> dict[str, bytes]:
        count = self._fitting(room)
        if count < self._least:
            return self._cut_inside(room, cuts)
        self._note(count, cuts)
        return {name: _encode(each.items[:count]) for name, each in self._lists.items()}

    def _fitting(self, room: int) -> int:
        """Return how many items of each list fit into *room*."""
        ends = self._ends
        used = ends[-1] if ends else self._punctuation(0)
        while used <= room and len(ends) < self._count:
            row = [bytes(each.items[len(ends)]) for each in self._lists.values()]
            commas = len(row) if ends else 0
            used += commas + sum(map(characters, row))
            ends.append(used)
        return bisect_right(ends, room)

    def _cut_inside(self, room: int, cuts: list[Cut]) -> dict[str, bytes]:
        """Cut the items themselves, because not even the first ones fit; if few, keep them all."""
        count = self._count
        first = self._first(count) if count <= FEW else {}
        if not first or self._smallest(first) > room:
            count = self._least
            first = self._first(count)
        self._note(count, cuts)
        items = {piece.path: piece for pieces in first.values() for piece in pieces}
        kept = {path: piece.encoded for path, piece in items.items()}
        singles = [Single(path, piece) for path, piece in items.items()]
        kept |= cut_largest(singles, room - self._punctuation(count), cuts)
        return {
            name: _encode([msgspec.Raw(kept[piece.path]) for piece in pieces])
            for name, pieces in first.items()
        }

    def _note(self, count: int, cuts: list[Cut]) -> None:
        for each in self._lists.values():
            if count < len(each.items):
                cuts.append(Cut(each.path, count, len(each.items)))

    def _punctuation(self, count: int) -> int:
        """Return how many brackets and commas the lists need with *count* items each."""
        return len(self._lists) * (len("[]") + max(count - 1, 0))


def cuttable(members: Mapping[str, ValuePiece]) -> list[Cuttable]:
    """Return the members that can be cut, in order; lists of equal length are grouped."""
    found: dict[str | int, Cuttable | dict[str, ListPiece]] = {}
    for name, piece in members.items():
        if isinstance(piece, ListPiece):
            if piece.items:
                lists = found.setdefault(len(piece.items), {})
                assert isinstance(lists, dict)
                lists[name] = piece
        elif piece.smallest < piece.size:
            found[name] = Single(name, piece)
    return [Columns(each) if isinstance(each, dict) else each for each in found.values()]


def cut_largest(parts: Sequence[Cuttable], room: int, cuts: list[Cut]) -> dict[str, bytes]:
    """Return the members that had to be cut for all *parts* to fit into *room* characters.

    The largest is cut first, down to the size of the next largest; then both are cut, and so on.
    """

    def needed(level: int) -> int:
        return sum(max(each.smallest, min(each.size, level)) for each in parts)

    sizes = range(max((each.size for each in parts), default=0) + 1)
    level = max(bisect_right(sizes, room, key=needed) - 1, 0)
    kept: dict[str, bytes] = {}
    for each in parts:
        if each.size > level:
            kept |= each.cut(max(each.smallest, level), cuts)
    return kept
