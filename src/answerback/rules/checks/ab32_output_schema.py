"""AB32x: whether data keep to the output schema, and listings say what they must."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from ...errors import needs_extra
from ..examples import MCP_DATA, MCP_FAILURE, WEATHER_SCHEMA, said
from ..finding import ENVELOPE, MCP, REST, About, Example, Fault, Faults, Scope, rule
from ..reply_view import Subject, escape

_MOST = 5
_UNSET = msgspec.UNSET
_WEATHER_TOOL: dict[str, Any] = {
    "name": "weather",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}

Check = Callable[[Any], list[tuple[str, str]]]


def checker(schema: dict[str, Any]) -> Check:
    """Gives the pointer and the message of all that breaks *schema*; needs the extra `lint`."""
    return _compiled(msgspec.json.encode(schema, order="sorted"))


@lru_cache(maxsize=256)
def _compiled(encoded: bytes) -> Check:
    with needs_extra("lint"):
        import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(msgspec.json.decode(encoded), retriever=_refuse)
    except (ValueError, jsonschema_rs.ReferencingError) as exc:
        reason = str(exc).partition("\n")[0]
        return lambda _: [("", f"the output schema itself is broken: {reason}")]
    return lambda data: _problems(validator, data)


def _refuse(uri: str) -> Any:
    # A schema comes from a stranger's log: it must not make us ask other machines for anything.
    raise ValueError(f"a reference to {uri} is not followed")


def _problems(validator: Any, data: Any) -> list[tuple[str, str]]:
    if validator.is_valid(data):
        return []
    found = []
    for error in validator.iter_errors(data):
        path = "".join(f"/{escape(str(step))}" for step in error.instance_path)
        found.append((path, error.message))
        if len(found) == _MOST:
            break
    return found


@rule(
    "AB320",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST, when="success", needs="schema"),
        hint="return what the schema says, or change the schema",
        bad=Example(
            said('{"temperature":"warm"}', structuredContent={"temperature": "warm"}),
            schema=WEATHER_SCHEMA,
        ),
        good=Example(MCP_DATA, schema=WEATHER_SCHEMA),
    ),
)
def output_schema_violated(it: Subject) -> Faults:
    """Clients check data against the schema and throw the whole reply away if it does not fit."""
    schema = it.given.schema
    if schema is None or it.data is _UNSET:
        return ()
    return _against(schema, it)


def _against(schema: dict[str, Any], it: Subject) -> Faults:
    where = {"mcp": "/structuredContent", "envelope": "/data"}.get(it.dialect, "")
    return [Fault(where + pointer, message) for pointer, message in checker(schema)(it.data)]


@rule(
    "AB321",
    About(
        scope=Scope(dialects=MCP, when="success", needs="schema"),
        hint="send the data as structuredContent, or set isError: true",
        bad=Example(said("22.5 °C, 65 %"), schema=WEATHER_SCHEMA),
        good=Example(MCP_DATA, schema=WEATHER_SCHEMA),
    ),
)
def data_missing(it: Subject) -> Faults:
    """A tool with an output schema has to send data; clients throw if there is none."""
    if it.given.schema is None or it.data is not _UNSET:
        return ()
    if it.found.get("resultType", "complete") != "complete":
        return ()
    return [Fault("", "the tool has an output schema, and the reply no structuredContent")]


@rule(
    "AB322",
    About(
        scope=Scope(dialects=MCP, when="failure", needs="schema"),
        hint="leave structuredContent out of an error; details can go in _meta",
        bad=Example(
            said("no such city", isError=True, structuredContent={"error": "no such city"}),
            schema=WEATHER_SCHEMA,
        ),
        good=Example(MCP_FAILURE, schema=WEATHER_SCHEMA),
    ),
)
def error_breaks_schema(it: Subject) -> Faults:
    """Clients check the data of errors too, and then tell of the schema and not of the error."""
    schema = it.given.schema
    if schema is None or it.data is _UNSET:
        return ()
    return _against(schema, it)[:1]


@rule(
    "AB323",
    About(
        scope=Scope(dialects=MCP, when="success", needs="schema"),
        severity="note",
        hint="declare an outputSchema",
        bad=Example(MCP_DATA, listed=True),
        good=Example(MCP_DATA, listed=True, schema=WEATHER_SCHEMA),
    ),
)
def output_schema_missing(it: Subject) -> Faults:
    """Data without a schema is data that no client can check, nor offer its users by name."""
    if not it.given.listed or it.given.schema is not None:
        return ()
    if not isinstance(it.data, dict):
        return ()
    return [Fault("/structuredContent", "the tool sends data and declares no output schema")]


@rule(
    "AB330",
    About(
        scope=Scope(dialects=MCP, part="tool"),
        hint='for no arguments: {"type": "object", "additionalProperties": false}',
        bad={"tools": [{"name": "weather", "description": "Tell the weather."}]},
        good={"tools": [_WEATHER_TOOL]},
    ),
)
def input_schema_missing(it: Subject, tool: dict[str, Any], index: int) -> Faults:
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
    About(
        scope=Scope(dialects=MCP, part="tool"),
        hint='wrap it, schema and data alike: {"result": …}',
        bad=Example(
            {"tools": [{**_WEATHER_TOOL, "outputSchema": {"type": "array"}}]},
            version="2025-11-25",
        ),
        good=Example(
            {"tools": [{**_WEATHER_TOOL, "outputSchema": WEATHER_SCHEMA}]}, version="2025-11-25"
        ),
    ),
)
def output_schema_not_an_object(it: Subject, tool: dict[str, Any], index: int) -> Faults:
    """Before 2026-07-28 an outputSchema is of an object; clients refuse the list of tools."""
    schema = tool.get("outputSchema")
    stateless = it.version.stateless if it.version is not None else "resultType" in it.found
    if schema is None or stateless or (isinstance(schema, dict) and schema.get("type") == "object"):
        return ()
    message = f"the outputSchema of {tool.get('name', index)} has no type: object at its root"
    return [Fault(f"/tools/{index}/outputSchema", message)]


@rule(
    "AB332",
    About(
        scope=Scope(dialects=MCP, part="tool"),
        severity="warning",
        hint="leave it out for a client of that version",
        bad=Example(
            {"tools": [{**_WEATHER_TOOL, "outputSchema": WEATHER_SCHEMA}]}, version="2024-11-05"
        ),
        good=Example({"tools": [_WEATHER_TOOL]}, version="2024-11-05"),
    ),
)
def output_schema_too_new(it: Subject, tool: dict[str, Any], index: int) -> Faults:
    """A client of a version without output schemas may fail the calls of tools that have one."""
    if it.version is None or it.version.structured or "outputSchema" not in tool:
        return ()
    name, version = tool.get("name", index), it.version.name
    message = f"{name} has an outputSchema, which is not in {version}"
    return [Fault(f"/tools/{index}/outputSchema", message)]
