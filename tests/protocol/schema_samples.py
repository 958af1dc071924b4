"""The simplest value that a JSON Schema of ours allows."""

from __future__ import annotations

from typing import Any

_BY_FORMAT = {"date": "2026-01-01", "uuid": "00000000-0000-4000-8000-000000000000"}


def sample(schema: Any, root: Any = None) -> Any:
    root = schema if root is None else root
    if "$ref" in schema:
        return sample(_resolved(schema["$ref"], root), root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return sample(schema[key][0], root)
    return _of_type(schema, root)


def _of_type(schema: Any, root: Any) -> Any:
    match schema.get("type"):
        case "object":
            needed = schema.get("required", [])
            properties = schema.get("properties", {})
            return {name: sample(properties[name], root) for name in needed}
        case "array":
            return [sample(schema["items"], root)] if schema.get("minItems") else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "string":
            return _BY_FORMAT.get(schema.get("format", ""), "a word")
        case _:
            return None


def _resolved(ref: str, root: Any) -> Any:
    found = root
    for part in ref.removeprefix("#/").split("/"):
        found = found[part]
    return found
