"""The text of `call NAME --help`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from ..tools.tool import Tool
from .schema_words import describe_schema, example_value, usage

if TYPE_CHECKING:
    from ..core.json_value import JsonObject


def tool_help(tool: Tool, command_line: str) -> str:
    """Return a tool's help; *command_line* is the command line up to the tool's name."""
    parts = [f"usage: {command_line} {usage(tool)}", tool.description, _arguments(tool)]
    parts.append(f"example:\n  {command_line} {_example_call(tool)}")
    return "\n\n".join(part for part in parts if part)


def _arguments(tool: Tool) -> str:
    rows = [_row(name, schema, tool) for name, schema in _properties(tool).items()]
    if not rows:
        return "It takes no arguments."
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(["arguments:", *(_line(row, widths) for row in rows)])


def _row(name: str, schema: JsonObject, tool: Tool) -> tuple[str, str, str]:
    kind = describe_schema(schema, tool.input_schema, members=True)
    if name in tool.input_schema.get("required", []):
        kind += ", required"
    elif "default" in schema:
        kind += f", default {msgspec.json.encode(schema['default']).decode()}"
    return name, kind, schema.get("description", "")


def _line(row: tuple[str, str, str], widths: list[int]) -> str:
    name, kind, description = row
    return f"  {name:{widths[0]}}  {kind:{widths[1]}}  {description}".rstrip()


def _example_call(tool: Tool) -> str:
    """Return the author's first example, else a generated one with all required arguments."""
    given = next(iter(tool.settings.examples), None)
    if given is not None:
        return f"{tool.name} --json {shlex.quote(msgspec.json.encode(given).decode())}"
    required = tool.input_schema.get("required", [])
    pairs = [
        f"{name}={example_value(schema, tool.input_schema)}"
        for name, schema in _properties(tool).items()
        if name in required
    ]
    return " ".join([tool.name, *map(shlex.quote, pairs)])


def _properties(tool: Tool) -> JsonObject:
    properties: JsonObject = tool.input_schema.get("properties", {})
    return properties
