"""The schemas of what each dialect sends, around the schema of a tool's own data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....dialects.reply_schemas import wire_schemas
from .blocks import ROOT, record, ref

if TYPE_CHECKING:
    from ....contract import Contract, Dialect

Schema = dict[str, Any]

ANYTHING: Schema = {}
TIMESTAMP: Schema = {"type": "string", "format": "date-time"}
REST_ERROR: Schema = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}
_OURS = "Answerback"
CONTENT = "AnswerbackContent"
MCP_RESULT = "AnswerbackMcpResult"
MCP_ERROR = "AnswerbackMcpError"
ENVELOPE = "AnswerbackEnvelope"
ENVELOPE_ERROR = "AnswerbackEnvelopeError"
PROBLEM = "AnswerbackProblem"
FAILURE = "AnswerbackFailure"


def shared_schemas(contract: Contract) -> dict[str, Schema]:
    """What all tools share, by name. An MCP result of some contracts is an envelope too."""
    found = {_OURS + name: each for name, each in wire_schemas(ROOT + _OURS + "{name}").items()}
    # MCP lets others leave it out; here it is always said.
    result = _and(found[MCP_RESULT], {"isError": {"const": False}})
    error = _and(found[MCP_ERROR], {"_meta": record({"answerback/error": _why(found)})})
    if contract.envelope_in_mcp:
        result = _and(result, {"success": {"const": True}, "timestamp": TIMESTAMP})
        more = {"success": {"const": False}, "timestamp": TIMESTAMP, "error": ref(FAILURE)}
        error = _and(error, more)
    return found | {MCP_RESULT: result, MCP_ERROR: error}


def error_schema(dialect: Dialect) -> Schema:
    """The body of an error; that of `rest` is small enough to be written out each time."""
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
    """The body of a success; *data* is the schema of the wrapped data, where it is known."""
    match dialect:
        case "mcp":
            return _with_data(MCP_RESULT, "structuredContent", data)
        case "envelope":
            return _with_data(ENVELOPE, "data", data)
        case _ if data is not None:
            return data
        case _ if blocks_only:
            return ref(CONTENT)
    result = record({"result": ANYTHING})
    return {"anyOf": [result, ref(CONTENT)]}


def _with_data(name: str, member: str, data: Schema | None) -> Schema:
    if data is None:
        return ref(name)
    return {"allOf": [ref(name), record({member: data})]}


def _why(found: dict[str, Schema]) -> Schema:
    """An error in `_meta`, which leaves its message out where the text is just that."""
    return record(found[FAILURE]["properties"], required=["code"])


def _and(schema: Schema, members: Schema) -> Schema:
    """An object schema with *members* as well, all of them required."""
    required = list(dict.fromkeys([*schema["required"], *members]))
    return record({**schema["properties"], **members}, required=required)
