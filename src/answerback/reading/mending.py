"""Makes a malformed MCP result readable, and says what was wrong with it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..dialects.common import answerback_meta, encode, read_error
from ..dialects.mcp_blocks import read_block
from ..errors import MalformedReply

_FORMAT_RULES = frozenset({"AB401", "AB402", "AB403"})
_TRUE = (True, "true", "True", 1)
_FALSE = (False, "false", "False", 0, None, "")


def mended(found: dict[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return a result that can be read, and the findings in the one that came.

    A block that cannot be read becomes a text that says so. Raises MalformedReply if nothing
    can be read.
    """
    from ..rules.checks.ab1_result import not_an_object
    from ..rules.finding import Fault
    from ..rules.reply_view import NO_CONTEXT
    from ..rules.validation import check

    whole = dict(found)
    findings = tuple(each for each in check(found, "mcp", NO_CONTEXT) if each.severity == "error")
    whole["content"] = _blocks(found)
    whole["isError"] = _flag(found.get("isError"))
    _drop_malformed_error(whole)
    is_empty = not whole["content"] and "structuredContent" not in found
    if is_empty and not whole["isError"]:
        raise MalformedReply("the result has no content that can be read")
    if not findings:
        findings = (not_an_object.finding(Fault("", "a part of the result cannot be read")),)
    return whole, findings


def _blocks(found: dict[str, Any]) -> list[Any]:
    content = found.get("content")
    if isinstance(content, str):
        return [_text(content)]
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return []
    repaired = _repaired(content)
    return [_readable(block) for block in repaired]


def _repaired(content: list[Any]) -> list[Any]:
    """Return the blocks with base64 and media types repaired where the rules can do it."""
    from ..rules.repair import repair
    from ..rules.reply_view import NO_CONTEXT

    copy = {"content": deepcopy(content)}
    repair(copy, "mcp", NO_CONTEXT, _FORMAT_RULES)
    return copy["content"]


def _readable(block: Any) -> Any:
    if isinstance(block, str):
        return _text(block)
    try:
        read_block(block)
    except MalformedReply as exc:
        return _text(f"[a block that cannot be read: {str(exc)[:200]}]")
    return block


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _flag(value: Any) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise MalformedReply(f"isError must be true or false, not {encode(value).decode()[:60]}")


def _drop_malformed_error(found: dict[str, Any]) -> None:
    """Remove our own error from `_meta` if it is malformed; the text has the message too."""
    error = answerback_meta(found.get("_meta"), "error")
    try:
        read_error(error, "")
    except MalformedReply:
        meta = {key: each for key, each in found["_meta"].items() if key != "answerback/error"}
        found["_meta"] = meta
