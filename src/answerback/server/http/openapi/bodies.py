"""Schemas of the response bodies in each dialect, around the schema of a tool's data."""

from __future__ import annotations

from typing import Any

from ....contract import Contract, Dialect
from ....dialects.reply_schemas import wire_schemas
from .components import SCHEMAS, object_schema, ref

Schema = dict[str, Any]

TIMESTAMP: Schema = {"type": "string", "format": "date-time"}
REST_ERROR = object_schema({"error": {"type": "string"}})
_PREFIX = "Answerback"
CONTENT = "AnswerbackContent"
MCP_RESULT = "AnswerbackMcpResult"
MCP_ERROR = "AnswerbackMcpError"
ENVELOPE = "AnswerbackEnvelope"
ENVELOPE_ERROR = "AnswerbackEnvelopeError"
PROBLEM = "AnswerbackProblem"
FAILURE = "AnswerbackFailure"


def shared_schemas(contract: Contract) -> dict[str, Schema]:
    """Return the schemas that all tools share, by name."""
    wire = wire_schemas(SCHEMAS + _PREFIX + "{name}")
    shared = {_PREFIX + name: schema for name, schema in wire.items()}
    # In MCP `isError` is optional, but Answerback always sends it.
    result = _with_required(shared[MCP_RESULT], {"isError": {"const": False}})
    failure = shared[FAILURE]
    # The message is omitted if it equals the result's text.
    in_meta = object_schema(failure["properties"], required=["code"]) | {"allOf": failure["allOf"]}
    meta = object_schema({"answerback/error": in_meta})
    error = _with_required(shared[MCP_ERROR], {"_meta": meta})
    if contract.envelope_in_mcp:
        members = {"success": {"const": True}, "timestamp": TIMESTAMP}
        result = _with_required(result, members)
        members = {"success": {"const": False}, "timestamp": TIMESTAMP, "error": ref(FAILURE)}
        error = _with_required(error, members)
    return shared | {MCP_RESULT: result, MCP_ERROR: error}


def error_schema(dialect: Dialect) -> Schema:
    """Return the schema of an error's body. For `rest` it is so small that it is not shared."""
    match dialect:
        case "rest":
            return REST_ERROR
        case "mcp":
            return ref(MCP_ERROR)
        case "envelope":
            return ref(ENVELOPE_ERROR)
        case "problem":
            return ref(PROBLEM)


def success_schema(dialect: Dialect, data: Schema | None, *, blocks_only: bool) -> Schema:
    """Return the schema of a success's body; *data* is the wrapped data's schema, if declared."""
    match dialect:
        case "mcp":
            return _with_data(MCP_RESULT, "structuredContent", data)
        case "envelope":
            return _with_data(ENVELOPE, "data", data)
        case _ if data is not None:
            return data
        case _ if blocks_only:
            return ref(CONTENT)
    # Without a declared type an object is sent as itself.
    return {"anyOf": [{"type": "object"}, ref(CONTENT)]}


def _with_data(name: str, member: str, data: Schema | None) -> Schema:
    if data is None:
        return ref(name)
    return {"allOf": [ref(name), object_schema({member: data})]}


def _with_required(schema: Schema, members: Schema) -> Schema:
    """Return the object schema *schema* with *members* added, all of them required."""
    required = list(dict.fromkeys([*schema["required"], *members]))
    return object_schema({**schema["properties"], **members}, required=required)
