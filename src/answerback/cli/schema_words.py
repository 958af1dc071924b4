"""Describes a tool's arguments to a person, from its schema: usage, kinds of value, examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..tools.tool import Tool
from ..types.scalars import format_in_words

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject


_FORMAT_NAMES = {
    "date": "date",
    "date-time": "date and time",
    "time": "time",
    "duration": "duration",
    "uuid": "uuid",
    "decimal": "decimal",
}
_FORMAT_EXAMPLES = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00",
    "duration": "PT1H30M",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "decimal": "1.50",
}
_TYPE_NAMES = {"string": "text", "boolean": "yes/no"}
_TYPE_EXAMPLES = {"string": "text", "boolean": True, "null": None, "object": {}, "array": []}
_NUMBER_EXAMPLES = {"integer": 1, "number": 1.5}
_MAX_DEPTH = 9
_MAX_REFERENCES = 10
_MAX_PLACEHOLDER = 30


def usage(tool: Tool) -> str:
    """Return how to call the tool: `greet name=TEXT [times=INTEGER]`."""
    required = tool.input_schema.get("required", [])
    pairs = [
        pair if name in required else f"[{pair}]"
        for name, schema in tool.input_schema.get("properties", {}).items()
        for pair in [f"{name}={_placeholder(schema, tool.input_schema)}"]
    ]
    return " ".join([tool.name, *pairs])


def _placeholder(schema: Json, root: JsonObject) -> str:
    """Return the value in the usage line: `INTEGER`, `small|big`, or `VALUE` if too long."""
    words = describe_schema(schema, root)
    if len(words) > _MAX_PLACEHOLDER:
        return "VALUE"
    # Literal values keep their case, because they are typed as they stand.
    is_literal = _resolve(schema, root).keys() & {"enum", "const"}
    options = words.split(" or ")
    return "|".join(options if is_literal else [word.upper().replace(" ", "-") for word in options])


def describe_schema(schema: Json, root: JsonObject, *, members: bool = False) -> str:
    """Describe the values that a schema takes; with *members*, also the members of objects."""
    found = _resolve(schema, root)
    match found:
        case {"const": value}:
            return _shell_literal(value)
        case {"enum": values}:
            return " or ".join(map(_shell_literal, values))
        case {"anyOf": options} | {"oneOf": options}:
            kinds = " or ".join(describe_schema(each, root, members=members) for each in options)
            return " or ".join(dict.fromkeys(w for w in kinds.split(" or ") if w != "null"))
        case {"type": "array"}:
            return _describe_list(found, root, members)
        case {"contentEncoding": _}:
            return "text or @file"
        case {"type": "string"} if (form := _string_format(found)) is not None:
            return _FORMAT_NAMES[form]
        case {"type": "object", "properties": names} if names and members:
            return f"object with {', '.join(names)}"
        case {"type": str(name)}:
            return _TYPE_NAMES.get(name, name)
    return "value"


def _describe_list(schema: JsonObject, root: JsonObject, members: bool) -> str:
    if schema.get("items"):
        return f"list of {describe_schema(schema['items'], root, members=members)}"
    items = schema.get("prefixItems", ()) if members else ()
    return (
        f"list of {', '.join(describe_schema(each, root) for each in items)}" if items else "list"
    )


def example_value(schema: Json, root: JsonObject) -> str:
    """Return a value that the schema takes, as written in a shell."""
    if "contentEncoding" in _resolve(schema, root):
        return "@file"
    value = _example(schema, root, 0)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and not any(isinstance(v, list | dict) for v in value):
        return ",".join(map(_shell_literal, value))
    return _shell_literal(value)


def _example(schema: Json, root: JsonObject, depth: int) -> Json:
    """Return an example, as short as possible below the first level: types may be recursive."""
    found = _resolve(schema, root)
    match found:
        case {"examples": [value, *_]} | {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            if depth and {"type": "null"} in options:
                return None
            return _example(options[0], root, depth + 1)
        case {"type": "array", "prefixItems": [*items]}:
            return [_example(item, root, depth + 1) for item in items]
        case {"type": "array", "items": items} if items:
            return [_example(items, root, depth + 1)] * found.get("minItems", 0 if depth else 1)
        case {"type": "object", "properties": members, "required": names} if depth < _MAX_DEPTH:
            return {name: _example(members.get(name, {}), root, depth + 1) for name in names}
        case {"type": str(name)}:
            return _example_number(found) if name in _NUMBER_EXAMPLES else _example_text(found)
    return "value"


def _example_text(schema: JsonObject) -> Json:
    """Return an example of any type but a number."""
    if "contentEncoding" in schema:
        return "dGV4dA=="
    form = _string_format(schema) if schema["type"] == "string" else None
    return _TYPE_EXAMPLES.get(schema["type"], "value") if form is None else _FORMAT_EXAMPLES[form]


def _example_number(schema: JsonObject) -> Json:
    number = _NUMBER_EXAMPLES[schema["type"]]
    if number < schema.get("minimum", number) or number > schema.get("maximum", number):
        return schema.get("minimum", schema.get("maximum"))
    if number <= schema.get("exclusiveMinimum", number - 1):
        return schema["exclusiveMinimum"] + 1
    return number


def _string_format(schema: JsonObject) -> str | None:
    """Return a string's `format`, or the one that its description implies, as for a time."""
    if schema.get("format") in _FORMAT_NAMES:
        return str(schema["format"])
    return format_in_words(schema.get("description"))


def _resolve(schema: Json, root: JsonObject) -> JsonObject:
    """Follow `$ref`; a reference that leads back to itself counts as an object.

    True, which takes any value, becomes the schema that has no members.
    """
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, dict):
            return {}
        if "$ref" not in schema:
            return schema
        schema = root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
    return {"type": "object"}


def _shell_literal(value: Json) -> str:
    """Return the value as written in a shell: a string unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
