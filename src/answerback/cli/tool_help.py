"""What `call NAME --help` says about one tool."""

from __future__ import annotations

from typing import Any

import msgspec

from ..tools.tool import Tool
from .samples import example
from .schema_words import kind, usage


def manual(tool: Tool, line: str) -> str:
    """The tool's page; *line* is how a call begins in this shell."""
    parts = [f"usage: {line} {usage(tool)}", tool.description, _arguments(tool)]
    parts.append(f"example:\n  {line} {_example(tool)}")
    return "\n\n".join(part for part in parts if part)


def _arguments(tool: Tool) -> str:
    rows = [_row(name, schema, tool) for name, schema in _properties(tool).items()]
    if not rows:
        return "It takes no arguments."
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(["arguments:", *(_line(row, widths) for row in rows)])


def _row(name: str, schema: dict[str, Any], tool: Tool) -> tuple[str, str, str]:
    words = kind(schema, tool.input_schema, told=True)
    if name in tool.input_schema.get("required", []):
        words += ", required"
    elif "default" in schema:
        words += f", default {msgspec.json.encode(schema['default']).decode()}"
    return name, words, schema.get("description", "")


def _line(row: tuple[str, str, str], widths: list[int]) -> str:
    name, words, description = row
    return f"  {name:{widths[0]}}  {words:{widths[1]}}  {description}".rstrip()


def _example(tool: Tool) -> str:
    """The first example of the author's own, else one made up of the required arguments."""
    import shlex

    given = next(iter(tool.settings.examples), None)
    if given is not None:
        return f"{tool.name} --json {shlex.quote(msgspec.json.encode(given).decode())}"
    required = tool.input_schema.get("required", [])
    pairs = [
        f"{name}={example(schema, tool.input_schema)}"
        for name, schema in _properties(tool).items()
        if name in required
    ]
    return " ".join([tool.name, *map(shlex.quote, pairs)])


def _properties(tool: Tool) -> dict[str, Any]:
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    return properties
