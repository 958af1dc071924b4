"""The verdict of the rules on a received reply: did the call fail, and is the reply well-formed?

The rules take long to load, so `read` imports this module only when it needs it.
"""

from __future__ import annotations

from typing import Any

from ..contract import Dialect
from ..core.content import Text
from ..core.reply import Reply
from ..core.shape import RESULT
from ..dialects.verdicts import is_failure_json
from ..rules.checks.ab1_forms import not_an_object, not_json
from ..rules.checks.ab2_failures import error_hidden_in_text, failure_as_json_text
from ..rules.finding import Fault, Finding
from ..rules.reply_view import NO_CONTEXT, ReplyView, is_declared
from ..rules.validation import check, validate

_MAX_TEXT = 10_000
"""An error object in a longer text is not found."""


def says_failed(data: Any, schema: dict[str, Any] | None) -> bool:
    """Return whether data is an error object; what the tool's output schema declares is not."""
    return is_failure_json(data) and (schema is None or not is_declared(data, schema))


def hidden_failures(reply: Reply[Any]) -> tuple[Finding, ...]:
    """Return what the rules AB201 and AB202 find: a success whose text or JSON says it failed."""
    content = [
        {"type": "text", "text": block.text[:_MAX_TEXT]} if isinstance(block, Text) else {}
        for block in reply.content
    ]
    found: dict[str, Any] = {"content": content}
    if reply.has_data and reply.data_from != "text":
        data = {"result": reply.data} if reply.shape is RESULT else reply.data
        found["structuredContent"] = data
    view = ReplyView(found, "mcp", NO_CONTEXT)
    # An envelope says itself that it is a success; its data may be an error that was looked up.
    is_envelope = reply.data_from == "data"
    rules = (error_hidden_in_text, *(() if is_envelope else (failure_as_json_text,)))
    return tuple(rule.finding(fault) for rule in rules for fault in rule.check(view))


def misspelt_members(found: dict[str, Any]) -> tuple[Finding, ...]:
    """Return the findings for Python names in a result; an SDK's own dump, with both, has none."""
    if {"is_error", "structured_content"} <= found.keys():
        return ()
    return tuple(each for each in check(found, "mcp", NO_CONTEXT) if each.rule == "AB118")


def errors_in(found: dict[str, Any], dialect: Dialect) -> tuple[Finding, ...]:
    """Return the findings that make a reply hard to read."""
    return tuple(each for each in check(found, dialect, NO_CONTEXT) if each.severity == "error")


def findings_in(raw: Any, message: str) -> tuple[Finding, ...]:
    """Return the findings in a value that cannot be read; *message* says why."""
    own = not_json if isinstance(raw, bytes | str) else not_an_object
    if isinstance(raw, dict):
        try:
            found = validate(raw)
        except Exception:  # noqa: BLE001 -- a foreign object may contain anything
            found = ()
        if any(each.severity == "error" for each in found):
            return found
    return (own.finding(Fault("", message)),)
