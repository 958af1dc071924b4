"""AB32x: data matches the tool's output schema. AB33x: `tools/list` has valid schemas."""

from __future__ import annotations

from typing import Any

import msgspec

from ..finding import (
    ENVELOPE,
    MCP,
    MCP_DATA,
    MCP_FAILURE,
    REST,
    WEATHER_SCHEMA,
    Example,
    Fault,
    Faults,
    Scope,
    rule,
    text_result,
)
from ..reply_view import ReplyView

_UNSET = msgspec.UNSET
_WEATHER_TOOL: dict[str, Any] = {
    "name": "weather",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@rule(
    "AB320",
    scope=Scope(dialects=MCP + ENVELOPE + REST, when="success", needs="schema"),
    hint="return what the schema says, or change the schema",
    bad=Example(
        text_result('{"temperature":"warm"}', structuredContent={"temperature": "warm"}),
        schema=WEATHER_SCHEMA,
    ),
    good=Example(MCP_DATA, schema=WEATHER_SCHEMA),
)
def output_schema_violated(reply: ReplyView) -> Faults:
    """Clients check data against the schema and throw the whole reply away if it does not fit."""
    schema = reply.context.schema
    if schema is None or reply.data is _UNSET:
        return ()
    return _schema_faults(schema, reply)


def _schema_faults(schema: dict[str, Any], reply: ReplyView) -> Faults:
    from ...types.schema_check import schema_check

    data_pointer = {"mcp": "/structuredContent", "envelope": "/data"}.get(reply.dialect, "")
    return [
        Fault(data_pointer + pointer, message)
        for pointer, message in schema_check(schema)(reply.sent_data)
    ]


@rule(
    "AB321",
    scope=Scope(dialects=MCP, when="success", needs="schema"),
    hint="send the data as structuredContent, or set isError: true",
    bad=Example(text_result("22.5 °C, 65 %"), schema=WEATHER_SCHEMA),
    good=Example(MCP_DATA, schema=WEATHER_SCHEMA),
)
def data_missing(reply: ReplyView) -> Faults:
    """A tool with an output schema has to send data; clients throw if there is none."""
    if reply.context.schema is None or reply.data is not _UNSET:
        return ()
    if reply.json.get("resultType", "complete") != "complete":
        return ()
    if reply.version is not None and not reply.version.structured:
        return ()
    return [Fault("", "the tool has an output schema, and the reply no structuredContent")]


@rule(
    "AB322",
    scope=Scope(dialects=MCP, when="failure", needs="schema"),
    hint="leave structuredContent out of an error; details can go in _meta",
    bad=Example(
        text_result("no such city", isError=True, structuredContent={"error": "no such city"}),
        schema=WEATHER_SCHEMA,
    ),
    good=Example(MCP_FAILURE, schema=WEATHER_SCHEMA),
)
def error_breaks_schema(reply: ReplyView) -> Faults:
    """Clients check the data of errors too, and then report the schema and not the error."""
    schema = reply.context.schema
    if schema is None or reply.data is _UNSET:
        return ()
    return _schema_faults(schema, reply)[:1]


@rule(
    "AB323",
    scope=Scope(dialects=MCP, when="success", needs="schema"),
    severity="note",
    hint="declare an outputSchema",
    bad=Example(MCP_DATA, listed=True),
    good=Example(MCP_DATA, listed=True, schema=WEATHER_SCHEMA),
)
def output_schema_missing(reply: ReplyView) -> Faults:
    """Without a schema no client can check the data, or offer its members by name."""
    if not reply.context.listed or reply.context.schema is not None:
        return ()
    if not isinstance(reply.data, dict):
        return ()
    return [Fault("/structuredContent", "the tool sends data and declares no output schema")]


@rule(
    "AB330",
    scope=Scope(dialects=MCP, part="tool"),
    hint='for no arguments: {"type": "object", "additionalProperties": false}',
    bad={"tools": [{"name": "weather", "description": "Tell the weather."}]},
    good={"tools": [_WEATHER_TOOL]},
)
def input_schema_missing(reply: ReplyView, tool: dict[str, Any], index: int) -> Faults:
    """Every tool has an inputSchema whose root is an object; clients drop one that has none."""
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and schema.get("type") == "object":
        return ()
    name = tool.get("name", index)
    if isinstance(schema, dict):
        message = f"the inputSchema of {name} has no type: object at its root"
        return [Fault(f"/tools/{index}/inputSchema", message)]
    return [Fault(f"/tools/{index}", f"{name} has no inputSchema")]


@rule(
    "AB331",
    scope=Scope(dialects=MCP, part="tool"),
    hint='wrap it, schema and data alike: {"result": …}',
    bad=Example(
        {"tools": [{**_WEATHER_TOOL, "outputSchema": {"type": "array"}}]},
        version="2025-11-25",
    ),
    good=Example(
        {"tools": [{**_WEATHER_TOOL, "outputSchema": WEATHER_SCHEMA}]}, version="2025-11-25"
    ),
)
def output_schema_not_an_object(reply: ReplyView, tool: dict[str, Any], index: int) -> Faults:
    """Before 2026-07-28 clients refuse the whole list unless each outputSchema is of an object."""
    schema = tool.get("outputSchema")
    if schema is None or reply.is_stateless:
        return ()
    if isinstance(schema, dict) and schema.get("type") == "object":
        return ()
    message = f"the outputSchema of {tool.get('name', index)} has no type: object at its root"
    return [Fault(f"/tools/{index}/outputSchema", message)]


@rule(
    "AB332",
    scope=Scope(dialects=MCP, part="tool"),
    severity="warning",
    hint="leave it out for a client of that version",
    bad=Example(
        {"tools": [{**_WEATHER_TOOL, "outputSchema": WEATHER_SCHEMA}]}, version="2024-11-05"
    ),
    good=Example({"tools": [_WEATHER_TOOL]}, version="2024-11-05"),
)
def output_schema_too_new(reply: ReplyView, tool: dict[str, Any], index: int) -> Faults:
    """A client of a version without output schemas may fail the calls of tools that have one."""
    if reply.version is None or reply.version.structured or "outputSchema" not in tool:
        return ()
    name, version = tool.get("name", index), reply.version.name
    message = f"{name} has an outputSchema, which is not in {version}"
    return [Fault(f"/tools/{index}/outputSchema", message)]
