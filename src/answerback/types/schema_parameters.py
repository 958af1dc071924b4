"""Reads the types of a schema's properties, so that texts can be turned into their values.

The types are only for reading: the schema itself decides which values are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Union

from .arguments import Parameter

_TYPES: dict[str, Any] = {
    "boolean": bool,
    "integer": int,
    "null": None,
    "number": float,
    "object": dict[str, Any],
    "string": str,
}
_MAX_DEPTH = 9


def parameters_of(schema: dict[str, Any], names: Iterable[str] = ()) -> list[Parameter]:
    """Return a parameter for each property, and for *names* that the schema also allows."""
    properties = schema.get("properties", {})
    found = [
        Parameter(name=name, annotation=_annotation(each, schema, 0))
        for name, each in properties.items()
    ]
    if schema.get("additionalProperties") is not False:
        others = [name for name in dict.fromkeys(names) if name not in properties]
        found += [Parameter(name=name, annotation=Any) for name in others]
    return found


def _annotation(schema: Any, root: dict[str, Any], depth: int) -> Any:
    schema = _resolved(schema, root)
    if depth > _MAX_DEPTH:
        return Any
    options = schema.get("anyOf") or schema.get("oneOf")
    kind = schema.get("type")
    if isinstance(kind, list):
        options = [{**schema, "type": each} for each in kind]
    if isinstance(options, list) and options:
        return _union([_annotation(each, root, depth + 1) for each in options])
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list) and values:
        plain = all(each is None or isinstance(each, str | bool | int) for each in values)
        return Literal[tuple(values)] if plain else Any
    if kind == "array":
        item = _annotation(schema.get("items"), root, depth + 1)
        return list.__class_getitem__(item)
    if kind == "string" and schema.get("contentEncoding") == "base64":
        return bytes
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _union(members: list[Any]) -> Any:
    return Any if Any in members else Union[tuple(members)]  # noqa: UP007 -- made at run time


def _resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """Follow references to the schema's own definitions; other schemas become an empty one."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        place, _, name = reference.removeprefix("#/").partition("/")
        schema = root.get(place, {}).get(name) if place in ("$defs", "definitions") else None
    return {}
