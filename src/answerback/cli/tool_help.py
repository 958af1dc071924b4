"""A tool's usage line and its `call NAME --help` text, generated from its schema.

Also the tables of entries that `list` shows.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ..types.json_schema import format_in_words
from ..types.schema_references import follow
from .program import aligned, printable_line, usage_line

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject
    from ..registry.declarations import ListedKind
    from ..tools.tool import Tool
    from .program import Target

# The name of each string format, and an example.
_FORMATS = {
    "date": ("date", "2026-01-31"),
    "date-time": ("date and time", "2026-01-31T12:00:00Z"),
    "time": ("time", "12:00:00"),
    "duration": ("duration", "PT1H30M"),
    "uuid": ("uuid", "00000000-0000-4000-8000-000000000000"),
    "decimal": ("decimal", "1.50"),
}
_TYPE_NAMES = {"string": "text", "boolean": "yes/no"}
_TYPE_EXAMPLES = {"string": "text", "boolean": True, "null": None, "object": {}, "array": []}
_NUMBER_EXAMPLES = {"integer": 1, "number": 1.5}
_MAX_DEPTH = 9
_MAX_DESCRIBED_DEPTH = 3
_MAX_PLACEHOLDER = 30
_MAX_COLUMN = 40


def tool_help(tool: Tool, command_line: str) -> str:
    """Return a tool's help; *command_line* is the command line up to the tool's name."""
    parts = [f"usage: {command_line} {usage(tool)}", tool.description, _arguments(tool)]
    parts.append(f"example:\n  {command_line} {_example_call(tool)}")
    return "\n\n".join(part for part in parts if part)


def _arguments(tool: Tool) -> str:
    """Return a row for each argument, and one for each additional line of its description."""
    rows = []
    for name, schema in _properties(tool).items():
        kind = _describe_schema(schema, tool.input_schema, members=True)
        if name in tool.input_schema.get("required", []):
            kind += ", required"
        elif "default" in schema:
            kind += f", default {msgspec.json.encode(schema['default']).decode()}"
        first, *more = schema.get("description", "").split("\n")
        rows += [(name, kind, first), *(("", "", line) for line in more)]
    if not rows:
        return "It takes any arguments." if _takes_any(tool) else "It takes no arguments."
    return "\n".join(["arguments:", *(f"  {line}" for line in aligned(rows))])


def _example_call(tool: Tool) -> str:
    """Return the author's first example, or a generated one with all required arguments."""
    given = next(iter(tool.settings.examples), None)
    if given is not None:
        return f"{tool.name} --json {shlex.quote(msgspec.json.encode(given).decode())}"
    required = tool.input_schema.get("required", [])
    pairs = [
        f"{name}={_example_value(schema, tool.input_schema)}"
        for name, schema in _properties(tool).items()
        if name in required
    ]
    return " ".join([tool.name, *map(shlex.quote, pairs)])


def _takes_any(tool: Tool) -> bool:
    """Return whether callers may send arguments that the schema does not name."""
    takes_object = tool.signature.argument_object is not None
    return takes_object and tool.input_schema.get("additionalProperties") is not False


def _properties(tool: Tool) -> JsonObject:
    properties: JsonObject = tool.input_schema.get("properties", {})
    # True, which accepts any value, is a valid schema too.
    return {name: each if isinstance(each, dict) else {} for name, each in properties.items()}


def usage(tool: Tool) -> str:
    """Return the tool's usage line, such as `greet name=TEXT [times=INTEGER]`."""
    kinds = {}
    for name, schema in _properties(tool).items():
        words = "|".join(dict.fromkeys(_choices(schema, tool.input_schema)))
        kinds[name] = words if len(words) <= _MAX_PLACEHOLDER else "VALUE"
    line = usage_line(tool.name, kinds, tool.input_schema.get("required", []))
    return f"{line} [NAME=VALUE ...]" if _takes_any(tool) else line


def table(target: Target, kind: ListedKind) -> str:
    """Return a line with the usage and summary of each entry."""
    return _usage_table(target.rows(kind, alone=True)) or f"{target.name} has no {kind}"


def _usage_table(rows: Sequence[tuple[str, str]]) -> str:
    """Return a line for each usage and description; the latter may be on its own line."""
    rows = [(printable_line(call), text) for call, text in rows]
    width = max((len(call) for call, _ in rows if len(call) <= _MAX_COLUMN), default=4)
    return "\n".join(
        f"{call:{width}}  {text}".rstrip()
        if len(call) <= width or not text
        else f"{call}\n{'':{width}}  {text}"
        for call, text in rows
    )


def section(noun: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a heading followed by a table of resources or prompts."""
    lines = _usage_table(rows).split("\n")
    return "\n".join([f"{noun}:", *(f"  {line}" for line in lines)])


def _choices(schema: Json, root: JsonObject, depth: int = 0) -> Iterator[str]:
    """Yield the values that can be typed: types in capitals, literal values unchanged."""
    match follow(schema, root):
        case {"const": value}:
            yield _shell_literal(value)
        case {"enum": values}:
            yield from map(_shell_literal, values)
        case {"anyOf": parts} | {"oneOf": parts} if depth < _MAX_DESCRIBED_DEPTH:
            for part in parts:
                if part != {"type": "null"}:
                    yield from _choices(part, root, depth + 1)
        case {"type": "array", "items": items} if items and depth < _MAX_DESCRIBED_DEPTH:
            yield f"LIST-OF-{'|'.join(dict.fromkeys(_choices(items, root, depth + 1)))}"
        case found:
            for word in _describe_schema(found, root).split(" or "):
                yield word.upper().replace(" ", "-")


def _describe_schema(
    schema: Json, root: JsonObject, *, members: bool = False, depth: int = 0
) -> str:
    """Describe the values that a schema accepts; with *members*, name the members of objects."""
    found = follow(schema, root) or {}
    # Schemas can be recursive.
    if depth > _MAX_DESCRIBED_DEPTH:
        return "value"
    below = partial(_describe_schema, root=root, members=members, depth=depth + 1)
    match found:
        case {"const": value}:
            return _shell_literal(value)
        case {"enum": values}:
            return " or ".join(map(_shell_literal, values))
        case {"anyOf": options} | {"oneOf": options}:
            kinds = " or ".join(map(below, options))
            return " or ".join(dict.fromkeys(w for w in kinds.split(" or ") if w != "null"))
        case {"type": "array", "items": items} if items:
            return f"list of {below(items)}"
        case {"type": "array"}:
            items = found.get("prefixItems", ()) if members else ()
            kinds = ", ".join(below(each, members=False) for each in items)
            return f"list of {kinds}" if kinds else "list"
        case {"contentEncoding": _}:
            return "text or @file"
        case {"type": "string"} if (form := _string_format(found)) is not None:
            return _FORMATS[form][0]
        case {"type": "object", "properties": names} if names and members:
            return f"object with {', '.join(names)}"
        case {"type": str(name)}:
            return _TYPE_NAMES.get(name, name)
    return "value"


def _example_value(schema: Json, root: JsonObject) -> str:
    """Return a value that the schema accepts, as written in a shell."""
    if "contentEncoding" in (follow(schema, root) or {}):
        return "@file"
    value = _example(schema, root, 0)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and not any(isinstance(v, list | dict) for v in value):
        return ",".join(map(_shell_literal, value))
    return _shell_literal(value)


def _example(schema: Json, root: JsonObject, depth: int) -> Json:
    """Return an example, as short as possible below the first level: types can be recursive."""
    found = follow(schema, root) or {}
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
        case {"type": "integer" | "number"}:
            return _example_number(found)
        case {"type": str(), "contentEncoding": _}:
            return "dGV4dA=="
        case {"type": "string"} if (form := _string_format(found)) is not None:
            return _FORMATS[form][1]
        case {"type": str(name)}:
            return _TYPE_EXAMPLES.get(name, "value")
    return "value"


def _example_number(schema: JsonObject) -> Json:
    number = _NUMBER_EXAMPLES[schema["type"]]
    if number < schema.get("minimum", number) or number > schema.get("maximum", number):
        return schema.get("minimum", schema.get("maximum"))
    if number <= schema.get("exclusiveMinimum", number - 1):
        return schema["exclusiveMinimum"] + 1
    return number


def _string_format(schema: JsonObject) -> str | None:
    """Return a string's `format`, or the one implied by its description (a time, for example)."""
    if schema.get("format") in _FORMATS:
        return str(schema["format"])
    return format_in_words(schema.get("description"))


def _shell_literal(value: Json) -> str:
    """Return the value as written in a shell: a string unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
