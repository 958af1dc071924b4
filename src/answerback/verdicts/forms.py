"""Recognises the forms of finished replies: MCP results, envelopes, problems, JSON-RPC messages."""

from __future__ import annotations

from typing import Any

from ..contract import Dialect
from ..core.content import is_block
from ..core.reply import ENVELOPE_MEMBERS, RESULT_MEMBERS
from ..errors import UNKNOWN_ERROR

_YES, _NO = ("true", "True", "yes"), ("false", "False", "no")
_FAILURE_STARTS = (
    *("Traceback (most", "Error executing tool ", "Error calling tool ", "```", '"{', '"['),
)
_MAX_CLASS_NAME = 100
_MCP_MEMBERS = frozenset({"content", "structuredContent", "resultType", "tools"})


# Chat completion messages have content too, but nothing else that could be data.
_RESULT_OR_MESSAGE = RESULT_MEMBERS | {"role", "name", "tool_call_id"}


def may_be_failure_line(text: str) -> bool:
    """Return False for nearly all texts without JSON; for others, `failure_line` decides."""
    if text.startswith(_FAILURE_STARTS):
        return True
    start = text[:_MAX_CLASS_NAME]
    return "Error: " in start or "Exception: " in start


def is_yes(flag: Any) -> bool:
    """Return whether a flag says yes in any usual spelling: true, 1, "true" or "yes"."""
    return flag == 1 if isinstance(flag, int) else isinstance(flag, str) and flag in _YES


def is_no(flag: Any) -> bool:
    """Return whether a flag says no in any usual spelling: false, 0, "false" or "no"."""
    return flag == 0 if isinstance(flag, int) else isinstance(flag, str) and flag in _NO


def finished_dialect(found: dict[str, Any]) -> Dialect | None:
    """Return the dialect of an object that can only be a finished reply; None if it may be data.

    Failures need less evidence than successes, because a failure must not be sent as a success.
    """
    has_content = _has_blocks(found)
    if is_yes(found.get("isError")):
        return "mcp" if has_content else "envelope"
    match found:
        case {"success": False} if not _is_report(found):
            return "envelope"
        case {"success": True} if has_content:
            return "mcp" if "isError" in found else "envelope"
        case {"success": True} if found.keys() <= ENVELOPE_MEMBERS:
            return "envelope"
        case {"content": _, "data": _} | {"content": _, "timestamp": _} if has_content:
            if found.keys() <= ENVELOPE_MEMBERS:
                return "envelope"
        case {"error": str() | dict() as error} if found.keys() <= ENVELOPE_MEMBERS:
            if not error or (isinstance(error, str) and not error.strip()):
                return None
            # Text beside data may be a warning; an error object is the envelope's own.
            if has_content or len(found) == 1 or (isinstance(error, dict) and "message" in error):
                return "envelope"
    return "mcp" if has_content and found.keys() <= RESULT_MEMBERS else None


def _is_report(found: dict[str, Any]) -> bool:
    """Return whether an object has data of its own beside `success`, such as a test run's results.

    An error or a message beside the flag makes it an envelope.
    """
    if found.get("error") or found.get("message") or found.get("content"):
        return False
    others = found.keys() - ENVELOPE_MEMBERS - {"errors", "errorMessages", "details"}
    return any(isinstance(found[name], list | dict) and bool(found[name]) for name in others)


def _has_blocks(found: dict[str, Any]) -> bool:
    """Return whether it has a list of blocks; an empty one counts only with other reply members."""
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
    """Return the dialect of a reply received without one: "mcp" or "envelope".

    `isError` makes it an MCP result, even along with `success`: the `envelope` contract sends both
    over MCP. Otherwise `success` makes it an envelope, and any other member of a result makes it
    an MCP result. A value with none of these counts as an envelope that lacks every member.
    """
    if not isinstance(found, dict):
        return "envelope"
    if "isError" in found:
        return "mcp"
    if "success" in found or _MCP_MEMBERS.isdisjoint(found):
        return "envelope"
    return "mcp"


def received_dialect(found: Any) -> Dialect:
    """Return the dialect of a reply that `read` received from any server; "rest" for plain data.

    An object that is not a finished reply is an MCP result if it has a member that only results
    have, or content and only members that results have.
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
            # A response without a result, or a JSON-RPC 1.0 response.
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


_SNAKE = {
    "structured_content": "structuredContent",
    "is_error": "isError",
    "result_type": "resultType",
    "mime_type": "mimeType",
    "meta": "_meta",
}
"""The Python names in the SDK's models, and their MCP names."""


def result_in_mcp_names(found: Any) -> Any:
    """Rename an SDK result's Python members to MCP's names; return other values unchanged."""
    if not isinstance(found, dict) or {"is_error", "structured_content"}.isdisjoint(found):
        return found
    if "content" not in found and "structured_content" not in found:
        return found
    renamed = in_mcp_names(found)
    blocks = renamed.get("content")
    if isinstance(blocks, list):
        renamed["content"] = [
            in_mcp_names(block) if isinstance(block, dict) else block for block in blocks
        ]
    return renamed


def in_mcp_names(found: dict[str, Any]) -> dict[str, Any]:
    """Return a result or a block with MCP's names, without the members that are None."""
    renamed = {_SNAKE.get(name, name): each for name, each in found.items() if each is not None}
    if isinstance(renamed.get("resource"), dict):
        renamed["resource"] = in_mcp_names(renamed["resource"])
    return renamed
