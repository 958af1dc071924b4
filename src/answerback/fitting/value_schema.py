"""The schema of each value in a reply's data: it says what may be cut.

A schema that it cannot follow is None, and the value stays whole. A schema may also say things
that are not read here, such as `contains`: whoever cuts a value checks it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

Schema: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["object", "array", "string", "other"]

_KINDS: dict[int, Kind] = {ord("{"): "object", ord("["): "array", ord('"'): "string"}
_TYPES: dict[int, str] = {
    **_KINDS,
    **dict.fromkeys(b"tf", "boolean"),
    ord("n"): "null",
}
_FIXED_VALUE = frozenset({"const", "enum"})
_FIXED_TEXT = frozenset({"pattern", "format", "contentEncoding", "contentMediaType"})
_MAX_STEPS = 100
"""How many references and unions are followed at one value; a schema may refer to itself."""

decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def kind_of(encoded: bytes) -> Kind:
    """Return the kind of a JSON value without white space before it."""
    return _KINDS.get(encoded[0], "other")


class ValueSchemas:
    """A document with the schema of a reply's data; an empty one allows everything."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    @property
    def root(self) -> Schema:
        return self._root

    def resolved(self, schema: object, encoded: bytes) -> Schema | None:
        """Return the keywords for this value, with references followed and a union's member taken.

        None if the value must stay as it is, or if a reference leads nowhere.
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
                waiting.append(self._target(each["$ref"]))
            waiting += each.get("allOf", ())
            for union in ("anyOf", "oneOf"):
                if union in each:
                    waiting.append(self._member(each[union], encoded))
        return None

    def _target(self, reference: object) -> object:
        """Return the schema of a reference inside the document; None for any other."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        target: object = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target

    def _member(self, members: Iterable[object], encoded: bytes) -> object:
        """Return the first member of a union that a value may be of; None if there is none."""
        names = decode_members(encoded) if encoded.startswith(b"{") else {}
        for member in members:
            found = self.resolved_member(member)
            if found is not None and _may_be(found, encoded, names):
                return member
        return None

    def resolved_member(self, member: object) -> Schema | None:
        """Return a union's member, with its references followed."""
        for _ in range(_MAX_STEPS):
            if not isinstance(member, dict):
                return {} if member is True else None
            if "$ref" not in member:
                return member
            member = self._target(member["$ref"])
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
    """Return False if a schema lists its values, as the tag of a class does, and not this one."""
    if not isinstance(schema, dict) or not _FIXED_VALUE & schema.keys():
        return True
    values = [schema["const"]] if "const" in schema else schema["enum"]
    return msgspec.json.decode(value) in values


def is_free_list(schema: Schema) -> bool:
    """Return whether a list may be of any length; a tuple may not."""
    return "prefixItems" not in schema and not isinstance(schema.get("items"), list)


def is_free_text(schema: Schema) -> bool:
    """Return whether the beginning of a text is as good as the text."""
    return _FIXED_TEXT.isdisjoint(schema)


def least(schema: Schema, keyword: Literal["minItems", "minLength"]) -> int:
    """Return the least length that the schema allows."""
    found = schema.get(keyword, 0)
    return int(found) if isinstance(found, int | float) else 0


def item_schema(schema: Schema, index: int) -> object:
    """Return the schema of a list's item, or of a tuple's."""
    first = schema.get("prefixItems", ())
    items = schema.get("items", True)
    if isinstance(items, list):  # Before 2020-12, a tuple's schemas were in `items`.
        first, items = items, schema.get("additionalItems", True)
    return first[index] if index < len(first) else items


def member_schema(schema: Schema, name: str) -> object:
    """Return the schema of an object's member; None if only a pattern could say it."""
    properties = schema.get("properties", {})
    if name in properties:
        return properties[name]
    return None if "patternProperties" in schema else schema.get("additionalProperties", True)
