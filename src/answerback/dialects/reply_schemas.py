"""The JSON Schema of each dialect, rendered from `forms`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..types.json_schema import schemas
from . import wire_types

if TYPE_CHECKING:
    from ..contract import Dialect

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_FORMS = (
    wire_types.Content,
    wire_types.McpResult,
    wire_types.McpError,
    wire_types.Envelope,
    wire_types.EnvelopeError,
    wire_types.Failure,
    wire_types.RestError,
    wire_types.Problem,
)
_OF: dict[Dialect, tuple[str, ...]] = {
    "mcp": ("McpResult", "McpError"),
    "envelope": ("Envelope", "EnvelopeError"),
    "rest": ("RestError", "Content"),
    "problem": ("Problem",),
}
_DATA: Schema = {
    "description": "The tool's own data, as its output schema has it; error alone is a failure's",
    "type": "object",
    "not": {"required": ["error"], "maxProperties": 1},
}
_OF_REST = (
    "A success is the tool's data, which may be any JSON object: its output schema says which, and "
    'OpenAPI shows it. A failure is exactly {"error": "message"}; its code is in X-Error-Code.'
)


def form_schemas(template: str = "#/$defs/{name}") -> dict[str, Schema]:
    """The schemas of all forms by name; *template* is how one refers to another."""
    _, found = schemas(_FORMS, template)
    # What types cannot say: a success has no error, and a problem's type is an address.
    found["Envelope"]["properties"]["error"] = False
    found["Problem"]["properties"]["type"]["format"] = "uri-reference"
    return found


def dialect_schema(dialect: Dialect) -> Schema:
    """The schema of a reply in *dialect*, a success or a failure."""
    found = form_schemas()
    names = _OF[dialect]
    options: list[Schema] = [{"$ref": f"#/$defs/{name}"} for name in names]
    whole: Schema = {"$schema": _DRAFT, "title": f"A reply in the dialect {dialect}"}
    if dialect == "rest":
        whole["description"] = _OF_REST
        options.append(_DATA)
        found["RestError"]["additionalProperties"] = False
    return whole | {"anyOf": options, "$defs": _needed(names, found)}


def seed_schema() -> Schema:
    """The schema of the envelope as seed 000 has it, word for word."""
    from pathlib import Path

    schema: Schema = msgspec.json.decode(
        Path(__file__).with_name("envelope.seed.json").read_bytes()
    )
    return schema


def _needed(names: tuple[str, ...], found: dict[str, Schema]) -> dict[str, Schema]:
    waiting, needed = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [ref.rpartition("/")[2] for ref in _refs(found[name])]
    return {name: found[name] for name in sorted(needed)}


def _refs(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [ref for each in schema for ref in _refs(each)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return own + [ref for each in schema.values() for ref in _refs(each)]
