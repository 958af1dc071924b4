"""Tells which dialect a decoded JSON reply is in, and which error code it carries.

The rules, the records, the middleware and the pytest plugin all ask here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UNKNOWN_ERROR

if TYPE_CHECKING:
    from ..contract import Dialect

_MCP_MEMBERS = frozenset({"content", "structuredContent", "resultType", "tools"})


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
