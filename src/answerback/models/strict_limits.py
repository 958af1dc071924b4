"""Measures converted schemas, and compares them with strict mode's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .provider_rules import SetLimits
from .schema_facts import inner_schemas


class SchemaSize(msgspec.Struct):
    """A schema's counts that providers limit."""

    members: int = 0
    optional: int = 0
    unions: int = 0
    depth: int = 0
    characters: int = 0
    enum_values: int = 0
    large_enum: int = 0
    """The characters of the largest string enum whose length is limited."""


class StrictLimits:
    """One request's limits; each strict tool uses up a part of them."""

    def __init__(self, limits: SetLimits) -> None:
        self.limits = limits
        self.tools = self.optional = self.unions = 0

    def refusal(self, schema: Mapping[str, Any]) -> str | None:
        """Return why a schema would exceed a limit; if it would not, count it and return None."""
        limits = self.limits
        try:
            size = measure(schema, limits.large_enum[0] if limits.large_enum else 0)
        except RecursionError:
            return "the schema is too deep"
        tools, optional = self.tools + 1, self.optional + size.optional
        unions = self.unions + size.unions
        largest = limits.large_enum[1] if limits.large_enum else None
        for found, limit, what in (
            (tools, limits.tools, "strict tools in a request"),
            (optional, limits.optional, "optional properties in all strict tools"),
            (unions, limits.unions, "properties with a union of types in all strict tools"),
            (size.members, limits.members, "properties in a schema"),
            (size.depth, limits.depth, "levels of objects in a schema"),
            (size.characters, limits.characters, "characters of names and values in a schema"),
            (size.enum_values, limits.enum_values, "values of enums in a schema"),
            (size.large_enum, largest, "characters in a large enum"),
        ):
            if limit is not None and found > limit:
                return f"{found} {what}, and the provider takes {limit}"
        self.tools, self.optional, self.unions = tools, optional, unions
        return None


def measure(schema: Mapping[str, Any], large: int = 0) -> SchemaSize:
    """Count what providers limit; an enum with more than *large* values is a large one."""
    size = SchemaSize(depth=_depth(schema, schema.get("$defs", {}), {}))
    size.characters = sum(map(len, schema.get("$defs", {})))
    for each in inner_schemas(schema):
        properties = each.get("properties")
        # A property may be called "properties", "enum" or "const" itself.
        if each.get("type") == "object" and isinstance(properties, Mapping):
            size.members += len(properties)
            size.characters += sum(map(len, properties))
            size.optional += len(properties.keys() - set(each.get("required", ())))
            size.unions += sum(map(_is_union, properties.values()))
        if isinstance(values := each.get("enum"), list):
            _count_values(values, size, large)
        elif "const" in each and not isinstance(each["const"], Mapping):
            size.characters += len(str(each["const"]))
    return size


def _count_values(values: list[Any], size: SchemaSize, large: int) -> None:
    characters = sum(len(str(value)) for value in values)
    size.enum_values += len(values)
    size.characters += characters
    if len(values) > large and all(isinstance(value, str) for value in values):
        size.large_enum = max(size.large_enum, characters)


def _is_union(schema: Any) -> bool:
    return "anyOf" in schema or isinstance(schema.get("type"), list)


def _depth(schema: Any, defs: Mapping[str, Any], known: dict[str, int]) -> int:
    """Return the number of object levels; a definition within itself is counted once."""
    if not isinstance(schema, Mapping):
        return 0
    if isinstance(ref := schema.get("$ref"), str):
        name = ref.rpartition("/")[2]
        if name not in known:
            # It counts as nothing inside itself.
            known[name] = 0
            known[name] = _depth(defs.get(name), defs, known)
        return known[name]
    inner = [*schema.get("anyOf", ()), schema.get("items"), *schema.get("properties", {}).values()]
    below = max((_depth(each, defs, known) for each in inner), default=0)
    return below + (schema.get("type") == "object")
