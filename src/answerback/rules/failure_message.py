"""Turns an error object into the sentence that a model should read instead."""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.json_value import is_integer

_MESSAGE_MEMBERS = (
    *("message", "error", "errors", "detail", "error_description", "msg", "reason", "title"),
    *("errorMessage", "error_message", "errorMessages", "description"),
)
_CODE_MEMBERS = ("code", "errorCode", "error_code", "type", "error_type", "errorType", "__type")
# `isError` states the first three; a stack is for the log.
_DROPPED = ("success", "ok", "isError", "stack", "trace", "object")


def failure_sentence(failure: Any) -> str:
    """Return `CODE: message (details)` without the missing parts; empty without a message."""
    if isinstance(failure, list):
        return _as_text(failure)
    if failure.keys() == {"result"} and isinstance(failure["result"], dict):
        return failure_sentence(failure["result"])
    members = dict(failure)
    if members.get("status") in ("error", "fail", "failed"):
        del members["status"]
    inner = members.get("error")
    if isinstance(inner, dict):
        members = {**members, "error": None, **inner}
    message = _pop_first_text(members, _MESSAGE_MEMBERS)
    code = _pop_first_text(members, _CODE_MEMBERS) if message else ""
    rest = {
        name: value
        for name, value in members.items()
        if name not in _DROPPED and value not in (None, "", [], {})
    }
    details = rest.pop("details") if rest.keys() == {"details"} else rest
    text = f"{code}: {message}" if code and code not in message else message
    more = msgspec.json.encode(details).decode() if details else ""
    return f"{text} ({more})" if message and more else text


def _pop_first_text(members: dict[str, Any], names: tuple[str, ...]) -> str:
    """Remove the first member of *names* that has a text, and return its text."""
    for name in names:
        if text := _as_text(members.get(name)):
            del members[name]
            return text
    return ""


def _as_text(value: Any) -> str:
    match value:
        case str():
            return value.strip()
        case _ if is_integer(value):
            return str(value)
        case [dict(), *_]:
            return "; ".join(filter(None, map(_issue_text, value)))
        case [str(), *_]:
            return "; ".join(map(str, value))
    return ""


def _issue_text(error: Any) -> str:
    """Return the message of an item in a list of errors, after its argument's path."""
    if not isinstance(error, dict):
        return ""
    message = _pop_first_text(dict(error), ("message", "msg", "detail", "title"))
    path = error.get("loc") or error.get("path")
    at = ".".join(map(str, path)) if isinstance(path, list) else ""
    return f"{at}: {message}" if at and message else message
