"""Detects which dialect a decoded JSON reply is in, and which error code it carries.

The rules, records, middleware, calls and pytest plugin all use it.
"""

from __future__ import annotations

from typing import Any

from ..contract import Dialect
from ..core.content import is_block
from ..core.reply import ENVELOPE_MEMBERS, RESULT_MEMBERS
from ..error_codes import UNKNOWN_ERROR

_MCP_MEMBERS = frozenset({"content", "structuredContent", "resultType", "tools"})

# Chat completion messages have content too, and nothing else that could be data.
_RESULT_OR_MESSAGE = RESULT_MEMBERS | {"role", "name", "tool_call_id"}


_FAILURE_MARKS = frozenset(
    {"success", "ok", "isError", "error", "errors", "errorMessages", "message", "title", "detail"}
)


def may_be_error_object(found: Any) -> bool:
    """Return False for nearly all data: without these members, nothing tells of a failure.

    `dialects.failure_json` decides about the rest; this saves loading and asking it.
    """
    if not isinstance(found, dict):
        return isinstance(found, list)
    is_wrapped = len(found) == 1 and isinstance(found.get("result"), dict)
    return is_wrapped or not _FAILURE_MARKS.isdisjoint(found)


def finished_dialect(found: dict[str, Any]) -> Dialect | None:
    """Return the dialect of an object that can only be a finished reply; None if it may be data.

    Failures need less evidence than successes, because a failure must not be sent as a success.
    """
    has_content = _has_blocks(found)
    if found.get("isError") is True:
        return "mcp" if has_content else "envelope"
    match found:
        case {"success": False}:
            return "envelope"
        case {"success": True} if has_content:
            return "mcp" if "isError" in found else "envelope"
        case {"success": True} | {"content": _, "data": _} if found.keys() <= ENVELOPE_MEMBERS:
            return "envelope" if has_content or "success" in found else None
        case {"error": str(error)} if len(found) == 1 and error.strip():
            return "envelope"
        case {"error": dict(error)} if len(found) == 1 and error:
            return "envelope"
    return "mcp" if has_content and found.keys() <= RESULT_MEMBERS else None


def _has_blocks(found: dict[str, Any]) -> bool:
    """Return whether it has a list of blocks; an empty one counts only beside other members."""
    match found.get("content"):
        case [_, *_] as blocks:
            return all(map(_is_block, blocks))
        case []:
            return isinstance(found.get("isError", found.get("success")), bool) or isinstance(
                found.get("structuredContent"), dict
            )
    return False


def _is_block(block: Any) -> bool:
    if isinstance(block, dict):
        return isinstance(block.get("type"), str)
    return is_block(block)


def dialect_of(found: Any) -> Dialect:
    """Return the dialect of a reply that arrives without one: "mcp" or "envelope".

    `isError` makes it an MCP result, even beside `success`: that is how the `envelope` contract
    answers over MCP. Otherwise `success` makes it an envelope, and any other member of a result
    makes it an MCP result. A value with none of these is an envelope that lacks every member.
    """
    if not isinstance(found, dict):
        return "envelope"
    if "isError" in found:
        return "mcp"
    if "success" in found or _MCP_MEMBERS.isdisjoint(found):
        return "envelope"
    return "mcp"


def received_dialect(found: Any) -> Dialect:
    """Return the dialect of a reply that `read` got from any server; "rest" for plain data.

    An object that is not a finished reply is an MCP result if it has a member that only results
    have, or content and nothing that results do not have.
    """
    if not isinstance(found, dict):
        return "rest"
    if (finished := finished_dialect(found)) is not None:
        return finished
    if "isError" in found or "structuredContent" in found:
        return "mcp"
    if isinstance(found.get("success"), bool) and found.keys() <= ENVELOPE_MEMBERS:
        return "envelope"
    if "content" in found and (found.keys() <= _RESULT_OR_MESSAGE or _has_blocks(found)):
        return "mcp"
    return "problem" if _is_problem(found) else "rest"


def _is_problem(found: dict[str, Any]) -> bool:
    match found:
        case {"status": int(status), "title": str()} | {"status": int(status), "type": str()}:
            return 400 <= status <= 599
    return False


def is_json_rpc(found: Any) -> bool:
    """Return whether a decoded value is a JSON-RPC message, or a message's error."""
    match found:
        case {"jsonrpc": _} if not {"result", "error", "method"}.isdisjoint(found):
            return True
        case {"jsonrpc": "2.0"} | {"id": _, "result": _, "error": _}:
            # A response without a result, or one of JSON-RPC 1.0.
            return set(found) <= {"jsonrpc", "id", "result", "error"}
        case {"error": {"code": int(), "message": str()}}:
            return set(found) <= {"error", "id"}
        case {"result": dict(result)} if set(found) <= {"result", "id"}:
            return finished_dialect(result) == "mcp"
        case {"code": int(code), "message": str()}:
            return code <= -32_000 and set(found) <= {"code", "message", "data"}
    return False


def is_block_list(found: Any) -> bool:
    """Return whether a decoded value is a result's content, without the result around it."""
    return isinstance(found, list) and bool(found) and all(map(_is_known_block, found))


def _is_known_block(block: Any) -> bool:
    match block:
        case {"type": "text", "text": str()}:
            return set(block) <= {"type", "text", "annotations", "_meta"}
        case {"type": "image" | "audio", "data": str(), "mimeType": str()}:
            return True
        case {"type": "resource_link", "uri": str()} | {"type": "resource", "resource": dict()}:
            return True
    return False


def code_of(found: Any) -> str:
    """Return a reply's error code in either dialect; empty if the reply is a success."""
    match found:
        case {"error": {"code": str(code)}}:
            return code
        case {"_meta": {"answerback/error": {"code": str(code)}}}:
            return code
        case {"success": False} | {"isError": True}:
            return UNKNOWN_ERROR
        case {"error": error} if error:
            return UNKNOWN_ERROR
    return ""
