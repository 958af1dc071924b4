"""Whether JSON tells of a call that failed, and not of something else that did.

An error and a record of an error, a room or a ticket have members of the same names. What counts is
that an object has nothing else in it, and that what it has is as an error has it.
"""

from __future__ import annotations

import re
from typing import Any

from .failure_text import STATUSES, reads_as_error

# What an object holds that is about a failure and nothing else.
ABOUT_FAILURE = frozenset(
    {
        *("success", "ok", "isError", "error", "errors", "error_type", "errorType", "type"),
        *("message", "msg", "errorMessage", "error_message", "error_description", "reason"),
        *("code", "errorCode", "error_code", "status", "statusCode", "status_code"),
        *("detail", "details", "hint", "retryable", "stack", "trace", "path", "timestamp"),
        *("request_id", "requestId", "data", "result"),
        # A problem has these too, and GitHub's, Jira's and Amazon's errors the others.
        *("title", "instance", "traceId", "documentation_url", "errorMessages", "__type"),
    }
)
# What Slack and Telegram say beside `ok: false`.
_BESIDE_NOT_OK = {"needed", "provided", "response_metadata", "warning", "description", "parameters"}
# What stands beside a message that is all there is to tell it by.
_BESIDE_MESSAGE = {
    *("message", "code", "errorCode", "error_code", "errorType", "error_type", "type", "__type"),
    *("detail", "details", "hint", "retryable", "stack", "trace", "request_id", "requestId"),
    "documentation_url",
}
# What one of several errors has, of GraphQL and of JSON:API; a finding of a linter has a line.
_OF_ONE = ABOUT_FAILURE | {"locations", "extensions", "field", "source", "id", "meta", "param"}
_OF_PROBLEM = ("detail", "instance", "traceId")
_EXCEPTION = re.compile(r"(?:.*[\W_])?\w*(?:error|exception)", re.IGNORECASE)
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)


def unfenced(text: str) -> str:
    """What stands in a fence of Markdown, if that is the whole text."""
    text = text.strip()
    found = _FENCED.fullmatch(text) if text.startswith("```") else None
    return found[1] if found else text


def tells_of_failure(value: Any) -> bool:
    """Whether a value is about a failed call; one that merely has a failure in it is not."""
    if isinstance(value, dict):
        # Most objects are told by their names to be about something else.
        return not ABOUT_FAILURE.isdisjoint(value) and _is_about_one(value)
    return isinstance(value, list) and bool(value) and all(map(_is_issue, value))


def _is_about_one(value: dict[str, Any]) -> bool:
    match value:
        case {"result": dict() as inner} if len(value) == 1:
            return tells_of_failure(inner)
        case {"object": "error", "message": str()}:
            return True
    return _is_failure(value)


def _is_failure(value: dict[str, Any]) -> bool:
    others = value.keys() - ABOUT_FAILURE
    is_not_ok = value.get("ok") is False or value.get("success") is False
    if others and not (is_not_ok and others <= _BESIDE_NOT_OK):
        return False
    fine = value.get("success") is True or value.get("status") in ("ok", "success", 200)
    if fine or value.get("data") or value.get("result"):
        return False
    if is_not_ok or value.get("isError") is True:
        return True
    error = value.get("error") or value.get("errors") or value.get("errorMessages")
    if value.get("status") in ("error", "fail") and (error or value.get("message")):
        return True
    return _failed_over_http(value) or _says_so(value) or _is_error(error)


def _failed_over_http(value: dict[str, Any]) -> bool:
    """A status and what it is for. A code may be of anything: a town, a coupon, a room."""
    message, title = value.get("message"), value.get("title")
    if isinstance(message, str):
        status = [value.get(name) for name in ("status", "statusCode", "status_code")]
        status += [value.get("code")] * (_is_status(value.get("code")) or _is_phrase(message))
    elif isinstance(title, str):
        is_problem = any(name in value for name in _OF_PROBLEM) or _is_phrase(title)
        status = [value.get("status")] * is_problem
    else:
        status = []
    return any(re.fullmatch("[45][0-9][0-9]", str(each)) for each in status)


def _is_status(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_phrase(words: str) -> bool:
    return bool(re.fullmatch(STATUSES, words, re.IGNORECASE)) or reads_as_error(words)


def _says_so(value: dict[str, Any]) -> bool:
    match value:
        case {"__type": str(name), "message": str()} if _EXCEPTION.fullmatch(name):
            return True
        case {"message": str(message)} if value.keys() <= _BESIDE_MESSAGE:
            name = value.get("type", "Error")
            return reads_as_error(message) and bool(_EXCEPTION.fullmatch(str(name)))
        case {"detail": str(detail)} if len(value) == 1:
            return bool(re.fullmatch(STATUSES, detail))
        case {"detail": [_, *_] as issues} if len(value) == 1:
            return all(isinstance(each, dict) and {"loc", "msg"} <= each.keys() for each in issues)
    return False


def _is_error(error: Any) -> bool:
    match error:
        case str() if error.strip():
            return True
        case {"message": str()} | {"code": _} | {"type": str()}:
            return True
        case [str(), *_]:
            return True
        case [{"message": str()} | {"title": str()} | {"detail": str()}, *_]:
            return all(isinstance(each, dict) and each.keys() <= _OF_ONE for each in error)
    return False


def _is_issue(value: Any) -> bool:
    """One of those that zod has with arguments, which the TypeScript SDK sends on as they are."""
    match value:
        case {"code": str(code), "path": list(), "message": str()}:
            return "_" in code
    return False
