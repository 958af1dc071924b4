"""The schemas of what each dialect sends, around the schema of a tool's own data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .blocks import BLOCKS, ENVELOPE_BLOCK, MCP_BLOCK, record, ref

if TYPE_CHECKING:
    from ....contract import Contract, Dialect

Schema = dict[str, Any]

ANYTHING: Schema = {}
TEXT: Schema = {"type": "string"}
TIMESTAMP: Schema = {"type": "string", "format": "date-time"}
REST_ERROR: Schema = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}
CONTENT = "AnswerbackContent"
MCP_RESULT = "AnswerbackMcpResult"
MCP_ERROR = "AnswerbackMcpError"
ENVELOPE = "AnswerbackEnvelope"
ENVELOPE_ERROR = "AnswerbackEnvelopeError"
PROBLEM = "AnswerbackProblem"
FAILURE = "AnswerbackFailure"

_WHY: Schema = {
    "code": {"type": "string", "description": "A stable name for what went wrong"},
    "details": ANYTHING,
    "retryable": {"type": "boolean", "description": "Whether the same call may work later"},
    "hint": {"type": "string", "description": "What to do about it"},
    "kind": {"type": "string", "description": "The code of ours that the code counts as"},
}


def shared_schemas(contract: Contract) -> dict[str, Schema]:
    """What all tools share, by name. An MCP result of some contracts is an envelope too."""
    mcp_result, mcp_error = _mcp_result(isError=False), _mcp_error()
    if contract.envelope_in_mcp:
        mcp_result = _and(mcp_result, {"success": {"const": True}, "timestamp": TIMESTAMP})
        more = {"success": {"const": False}, "timestamp": TIMESTAMP, "error": ref(FAILURE)}
        mcp_error = _and(mcp_error, more)
    return {
        **BLOCKS,
        CONTENT: record({"content": _list_of(MCP_BLOCK)}),
        MCP_RESULT: mcp_result,
        MCP_ERROR: mcp_error,
        ENVELOPE: _envelope(success=True),
        ENVELOPE_ERROR: _and(_envelope(success=False), {"error": ref(FAILURE)}),
        FAILURE: record({"message": TEXT, **_WHY}, required=["code", "message"]),
        PROBLEM: _problem(),
    }


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


def _mcp_result(*, isError: bool) -> Schema:  # noqa: N803 - the member's name
    members = {
        "content": _list_of(MCP_BLOCK),
        "structuredContent": {"type": "object"},
        "isError": {"const": isError},
        "_meta": {"type": "object"},
    }
    return record(members, required=["content", "isError"])


def _mcp_error() -> Schema:
    error = record({"message": TEXT, **_WHY}, required=["code"])
    meta = record({"answerback/error": error})
    return _and(_mcp_result(isError=True), {"_meta": meta}, without="structuredContent")


def _envelope(*, success: bool) -> Schema:
    members: Schema = {
        "success": {"const": success},
        "timestamp": TIMESTAMP,
        "content": _list_of(ENVELOPE_BLOCK, minItems=1),
    }
    optional = {"data": ANYTHING} if success else {}
    return record({**members, **optional, "meta": {"type": "object"}}, required=list(members))


def _problem() -> Schema:
    why = {name: _WHY[name] for name in ("code", "details", "retryable", "hint")}
    members = {
        "type": {"type": "string", "format": "uri-reference"},
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": TEXT,
        **why,
    }
    return record(members, required=["type", "title", "status", "detail", "code"])


def _and(schema: Schema, members: Schema, without: str = "") -> Schema:
    """An object schema with *members* as well, all of them required."""
    properties = {**schema["properties"], **members}
    properties.pop(without, None)
    required = list(dict.fromkeys([*schema["required"], *members]))
    return record(properties, required=required)


def _list_of(name: str, **limits: int) -> Schema:
    return {"type": "array", "items": ref(name), **limits}
