"""The object that tells of a failure, as the sentence that a model would rather read."""

from __future__ import annotations

from typing import Any

import msgspec

_MESSAGES = (
    *("message", "error", "errors", "detail", "error_description", "msg", "reason", "title"),
    *("errorMessage", "error_message", "errorMessages", "description"),
)
_CODES = ("code", "errorCode", "error_code", "type", "error_type", "errorType", "__type")
# What isError says already, and what is nobody's business.
_DROPPED = ("success", "ok", "isError", "stack", "trace", "object")


def retold(failure: Any) -> str:
    """`CODE: message (details)`, as much of it as there is; empty if there is no message."""
    if isinstance(failure, list):
        return _said(failure)
    if failure.keys() == {"result"} and isinstance(failure["result"], dict):
        return retold(failure["result"])
    members = dict(failure)
    if members.get("status") in ("error", "fail", "failed"):
        del members["status"]
    inner = members.get("error")
    if isinstance(inner, dict):
        members = {**members, "error": None, **inner}
    message = _taken(members, _MESSAGES)
    code = _taken(members, _CODES) if message else ""
    rest = {
        name: value
        for name, value in members.items()
        if name not in _DROPPED and value not in (None, "", [], {})
    }
    details = rest.pop("details") if rest.keys() == {"details"} else rest
    text = f"{code}: {message}" if code and code not in message else message
    more = msgspec.json.encode(details).decode() if details else ""
    return f"{text} ({more})" if message and more else text


def _taken(members: dict[str, Any], names: tuple[str, ...]) -> str:
    """The first of these that says something, taken out."""
    for name in names:
        if said := _said(members.get(name)):
            del members[name]
            return said
    return ""


def _said(value: Any) -> str:
    match value:
        case str():
            return value.strip()
        case int() if not isinstance(value, bool):
            return str(value)
        case [dict(), *_]:
            return "; ".join(filter(None, map(_one, value)))
        case [str(), *_]:
            return "; ".join(map(str, value))
    return ""


def _one(error: Any) -> str:
    """One of several errors: what it says, and of which argument."""
    if not isinstance(error, dict):
        return ""
    said = _taken(dict(error), ("message", "msg", "detail", "title"))
    path = error.get("loc") or error.get("path")
    at = ".".join(map(str, path)) if isinstance(path, list) else ""
    return f"{at}: {said}" if at and said else said
