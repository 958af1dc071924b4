"""Tells which dialect a decoded JSON reply is in, and which error code it carries.

The rules, the records, the middleware, the calls and the pytest plugin all ask here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..content import BLOCKS
from ..errors import UNKNOWN_ERROR

if TYPE_CHECKING:
    from ..contract import Dialect

_MCP_MEMBERS = frozenset({"content", "structuredContent", "resultType", "tools"})

_RESULT_MEMBERS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_ENVELOPE_MEMBERS = frozenset(
    {"success", "timestamp", "content", "data", "error", "message", "meta"}
)


def finished_dialect(found: dict[str, Any]) -> Dialect | None:
    """The dialect of an object that can only be a finished reply; None if it may be data.

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
        case {"success": True, "data": _} if found.keys() <= _ENVELOPE_MEMBERS:
            return "envelope"
        case {"error": str(error)} if len(found) == 1 and error.strip():
            return "envelope"
        case {"error": dict(error)} if len(found) == 1 and error:
            return "envelope"
    return "mcp" if has_content and found.keys() <= _RESULT_MEMBERS else None


def _has_blocks(found: dict[str, Any]) -> bool:
    """Whether there is a list of blocks; an empty one counts only in a result that says more."""
    match found.get("content"):
        case [_, *_] as blocks:
            return all(map(_is_block, blocks))
        case []:
            return isinstance(found.get("isError", found.get("success")), bool) or isinstance(
                found.get("structuredContent"), dict
            )
    return False


def _is_block(block: Any) -> bool:
    return isinstance(block, BLOCKS) or (
        isinstance(block, dict) and isinstance(block.get("type"), str)
    )


def dialect_of(found: Any) -> Dialect:
    """The dialect of a reply that comes without one: "mcp" or "envelope".

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


def code_of(found: Any) -> str:
    """The error code of a reply in either dialect; empty if the reply is a success."""
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
