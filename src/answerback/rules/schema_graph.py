"""Reads a schema as a graph: which schemas apply to a value, to its members and to its items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import unquote

import msgspec

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_SAME_VALUE_BY_NAME = ("dependentSchemas", "dependencies")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_BACKTRACKS = re.compile(r"\(\?[=!<]|\\[1-9k]")
_SLOW_FORMATS = ("idn-hostname", "idn-email", "iri", "iri-reference")
_NUMBERS = ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class SchemaNode(msgspec.Struct):
    """A schema; the numbers in its lists are indexes into `SchemaGraph.nodes`.

    Of the schemas in one group, at most one applies to the same member or item.
    """

    weight: int
    """What its own keywords cost for one value, in the unit of `schema_cost`."""
    deep: int
    """How many of its keywords look at all values below."""
    unevaluated: bool
    has_choices: bool
    in_place: list[int]
    """The schemas that apply to the same value."""
    members: list[list[int]]
    items: list[list[int]]


class SchemaGraph:
    """The schemas that the root leads to, but not many more than *limit*."""

    def __init__(self, root: dict[str, Any], limit: int) -> None:
        self.nodes: list[SchemaNode] = []
        self.references = 0
        self.patterns: set[str] = set()
        self.not_followed = ""
        """The reason why a reference is not followed, if there is such a reference."""
        self._root = root
        self._has_inner_id = False
        self._schemas = [root]
        self._indexes = {id(root): 0}
        # The list grows meanwhile.
        for schema in self._schemas:
            self.nodes.append(self._node(schema))
            if len(self.nodes) > limit:
                break
        if self._has_inner_id and self.references and not self.not_followed:
            self.not_followed = "references next to an inner $id are not followed"

    def _node(self, schema: dict[str, Any]) -> SchemaNode:
        named = (schema.get("pattern"), *_named(schema, "patternProperties"))
        patterns = [each for each in named if isinstance(each, str)]
        self.patterns.update(patterns)
        return SchemaNode(
            weight=_weight(schema) + sum(map(_pattern_weight, patterns)),
            deep=_deep_keywords(schema),
            unevaluated=any(keyword in schema for keyword in _UNEVALUATED),
            has_choices="anyOf" in schema or "oneOf" in schema,
            in_place=self._indexes_of([*_same_value(schema), *self._targets(schema)]),
            members=self._groups(_member_schemas(schema)),
            items=self._groups(_item_schemas(schema)),
        )

    def _groups(self, groups: list[list[Any]]) -> list[list[int]]:
        return [indexes for group in groups if (indexes := self._indexes_of(group))]

    def _indexes_of(self, found: list[Any]) -> list[int]:
        """Return the schemas' indexes; `true`, `false` and malformed schemas have none."""
        indexes = []
        for schema in found:
            if not isinstance(schema, dict):
                continue
            index = self._indexes.setdefault(id(schema), len(self._schemas))
            if index == len(self._schemas):
                self._schemas.append(schema)
                self._notice_id(schema)
            indexes.append(index)
        return indexes

    def _targets(self, schema: dict[str, Any]) -> Iterator[Any]:
        """Yield the target of the schema's reference, if it has one."""
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            self.not_followed = "a dynamic reference is not followed"
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return
        self.references += 1
        base, _, pointer = reference.partition("#")
        own = str(self._root.get("$id", "")).rstrip("#")
        if base not in ("", own) or (pointer and not pointer.startswith("/")):
            self.not_followed = f"a reference to {reference[:200]} is not followed"
            return
        found: Any = self._root
        for step in unquote(pointer).split("/")[1:]:
            found = _step(found, step.replace("~1", "/").replace("~0", "~"))
            self._notice_id(found)
        yield found

    def _notice_id(self, schema: Any) -> None:
        """Notice an `$id` below the root: references there lead somewhere else."""
        if isinstance(schema, dict) and schema is not self._root:
            ids = (schema.get("$id"), schema.get("id"))
            self._has_inner_id = self._has_inner_id or any(isinstance(each, str) for each in ids)


def inner_values(value: Any) -> Iterator[Any]:
    """Yield all values in a JSON value, itself included."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, dict):
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)


def count_values(value: Any, limit: int) -> int:
    """Return the number of values in a JSON value, or *limit* if there are more."""
    return sum(1 for _ in islice(inner_values(value), limit))


def _step(found: Any, name: str) -> Any:
    """Return an inner value, or None; the validator reports references that lead nowhere."""
    if isinstance(found, list):
        return found[int(name)] if name.isdecimal() and int(name) < len(found) else None
    return found.get(name) if isinstance(found, dict) else None


def _several(schema: dict[str, Any], keyword: str) -> list[Any]:
    """Return the schemas of a keyword that has one schema or a list of them."""
    value = schema.get(keyword)
    return value if isinstance(value, list) else [value]


def _named(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _same_value(schema: dict[str, Any]) -> Iterator[Any]:
    for keyword in _SAME_VALUE:
        yield from _several(schema, keyword)
    for keyword in _SAME_VALUE_BY_NAME:
        yield from _named(schema, keyword).values()


def _member_schemas(schema: dict[str, Any]) -> list[list[Any]]:
    return [
        [*_named(schema, "properties").values(), schema.get("additionalProperties")],
        *([each] for each in _named(schema, "patternProperties").values()),
        [schema.get("propertyNames")],
        [schema.get("unevaluatedProperties")],
    ]


def _item_schemas(schema: dict[str, Any]) -> list[list[Any]]:
    in_order = ("prefixItems", "items", "additionalItems")
    return [
        [each for keyword in in_order for each in _several(schema, keyword)],
        [schema.get("contains")],
        [schema.get("unevaluatedItems")],
    ]


def _literals(schema: dict[str, Any]) -> list[Any]:
    values = schema.get("enum")
    return [*(values if isinstance(values, list) else ()), schema.get("const")]


def _deep_keywords(schema: dict[str, Any]) -> int:
    containers = any(isinstance(each, dict | list) for each in _literals(schema))
    return ("uniqueItems" in schema) + containers


def _weight(schema: dict[str, Any]) -> int:
    """Return what the schema's keywords cost for one value, as measured."""
    weight = 1 + len(_several(schema, "required"))
    for keyword in ("dependentRequired", "dependencies"):
        for each in _named(schema, keyword).values():
            weight += len(each) if isinstance(each, list) else 0
    literals = _literals(schema)
    # Texts and numbers are found by their hash, but an error message copies them.
    weight += len(literals) // 16
    for value in literals:
        weight += 5 * count_values(value, 100_000) if isinstance(value, dict | list) else 0
    if schema.get("format") in _SLOW_FORMATS:
        weight += 80
    for keyword in _NUMBERS:
        weight += _number_weight(schema.get(keyword), keyword)
    return weight


def _number_weight(value: Any, keyword: str) -> int:
    if isinstance(value, float) and value and keyword == "multipleOf":
        return 30 if abs(value) > 1e-30 else 600
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return 2 * value.bit_length()
    return 0


def _pattern_weight(pattern: str) -> int:
    return 500 if _BACKTRACKS.search(pattern) else 2
