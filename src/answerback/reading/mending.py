"""Makes a malformed MCP result or envelope readable, and says what was wrong with it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import msgspec

from ..core.content import Block, Link, Text
from ..dialects import envelope, mcp_blocks
from ..dialects.common import answerback_meta, is_added, read_error, read_timestamp
from ..errors import MalformedReply
from .foreign_errors import object_error
from .sources import in_mcp_names

# The rules about base64 and media types, whose fixes make a block readable.
_FIXED_RULES = frozenset({"AB401", "AB402", "AB403"})
_TRUE = (True, "true", "True")
_FALSE: tuple[Any, ...] = (False, "false", "False", None, "", {}, [])
_MAX_REASON = 200


def mended(
    found: dict[str, Any], dialect: Literal["mcp", "envelope"]
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return a readable reply, and the findings in the original.

    An unreadable block becomes a text that says so. Raises MalformedReply if nothing can be
    read.
    """
    from .read_reply import errors_in

    findings = errors_in(found, dialect)
    whole = {**found, "content": _blocks(found, dialect)}
    if dialect == "mcp":
        whole["isError"] = _flag(found.get("isError"))
        # Remove our own error from `_meta` if it is malformed; the text has the message too.
        error = answerback_meta(whole.get("_meta"), "error")
        try:
            read_error(error, "")
        except MalformedReply:
            meta = whole["_meta"].items()
            whole["_meta"] = {key: each for key, each in meta if key != "answerback/error"}
        failed = whole["isError"]
    else:
        try:
            read_timestamp(whole.get("timestamp"))
        except MalformedReply:
            del whole["timestamp"]
        whole.update(_readable_error(found))
        failed = found.get("success") is False or bool(found.get("error"))
    has_data = not {"structuredContent", "data"}.isdisjoint(found) or found.get("content") == []
    if not whole["content"] and not has_data and not failed:
        raise MalformedReply("the reply has no content that can be read")
    return whole, findings


def _blocks(found: dict[str, Any], dialect: Literal["mcp", "envelope"]) -> list[Any]:
    content = found.get("content")
    if isinstance(content, str | dict):
        content = [content]
    if not isinstance(content, list):
        return []
    write_block = (mcp_blocks if dialect == "mcp" else envelope).write_block
    own = [block for block in content if not is_added(block)]
    if dialect == "mcp":
        from ..rules.reply_view import NO_CONTEXT
        from ..rules.validation import repair

        copy = {"content": deepcopy(own)}
        repair(copy, "mcp", NO_CONTEXT, _FIXED_RULES)
        own = copy["content"]
    return [msgspec.to_builtins(write_block(_read_somehow(block))) for block in own]


def _read_somehow(block: Any) -> Block:
    """Read a block in MCP's form, in the envelope's, or with the SDK's Python names."""
    if not isinstance(block, dict):
        return Text(block if isinstance(block, str) else _said(f"it is {block!r}"))
    reason = ""
    for read_block in (mcp_blocks.read_block, envelope.read_block, _read_renamed, _read_odd):
        try:
            return read_block(block)
        except MalformedReply as exc:
            reason = reason or str(exc)
    return Text(_said(reason))


def _said(reason: str) -> str:
    return f"[a block that cannot be read: {reason[:_MAX_REASON]}]"


def _read_renamed(block: dict[str, Any]) -> Block:
    return mcp_blocks.read_block(in_mcp_names(block))


def _read_odd(block: dict[str, Any]) -> Block:
    """Read block forms that some servers send and no specification has."""
    match block:
        case {"type": "text", "text": int() | float() as number}:
            return Text(str(number))
        case {"type": "resource", "uri": str(uri)}:
            return Link(uri, str(block.get("name", uri)))
        case {"type": "resource", "resource": {"uri": str(uri)} as resource}:
            return Link(uri, str(resource.get("name", uri)))
    raise MalformedReply("no form of a block")


def _flag(value: Any) -> bool:
    if value in _TRUE or (isinstance(value, int) and value == 1):
        return True
    if value in _FALSE:
        return False
    raise MalformedReply("isError must be true or false")


def _readable_error(found: dict[str, Any]) -> dict[str, Any]:
    """Return the members that say whether an envelope failed, so that they can be read."""
    success = found.get("success")
    members: dict[str, Any] = {}
    if not isinstance(success, bool):
        members["success"] = not found.get("error")
    error = found.get("error")
    if not isinstance(error, dict):
        return members
    try:
        read_error(error, "")
    except MalformedReply:
        whole = object_error({"error": error})
        members["error"] = {"code": whole.code, "message": whole.message, "details": error}
    return members
