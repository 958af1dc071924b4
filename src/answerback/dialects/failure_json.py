"""Recognises error objects in JSON: `{"success": false, "error": "…"}` and its many variants.

The rules, `read`, `wrap` and tools all decide by it whether a value says that a call failed.

Error objects and ordinary records (a ticket, a room, a log entry) share member names.
An object counts as an error object only if it has no other members, and if the values are those of
an error. `success: false` beside an error counts whatever else is there.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..core.json_value import is_integer
from ..core.limits import MAX_INNER_BYTES, MAX_VALUES
from ..types.json_text import has_more_marks
from .reply_or_data import may_be_error_object

# The reason phrases of HTTP's errors.
STATUSES = (
    "Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|Method Not Allowed|Conflict|"
    "Request Time-?out|Gone|(?:Payload|Content) Too Large|Unprocessable (?:Entity|Content)|"
    "Too Many Requests|Client Error|Server Error|Internal Server Error|Not Implemented|"
    "Bad Gateway|Service Unavailable|Gateway Time-?out"
)
# The members of error objects; an object with any other member is a record.
FAILURE_MEMBERS = frozenset(
    {
        *("success", "ok", "isError", "error", "errors", "error_type", "errorType", "type"),
        *("message", "msg", "errorMessage", "error_message", "error_description", "reason"),
        *("code", "errorCode", "error_code", "status", "statusCode", "status_code"),
        *("detail", "details", "hint", "retryable", "stack", "trace", "path", "timestamp"),
        *("request_id", "requestId", "data", "result"),
        # The first three are members of problems, the others of errors of GitHub, Jira and AWS.
        *("title", "instance", "traceId", "documentation_url", "errorMessages", "__type"),
    }
)
# Slack and Telegram send these members beside `ok: false`.
_MEMBERS_BESIDE_NOT_OK = {
    "needed",
    "provided",
    "response_metadata",
    "warning",
    "description",
    "parameters",
}
# An object with only these members is an error if its message reads as one.
_MEMBERS_BESIDE_MESSAGE = {
    *("message", "code", "errorCode", "error_code", "errorType", "error_type", "type", "__type"),
    *("detail", "details", "hint", "retryable", "stack", "trace", "request_id", "requestId"),
    "documentation_url",
}
# The members of an item of `errors`, as in GraphQL and JSON:API. `line` is not among them: an item
# with a line is a linter's finding.
_ITEM_MEMBERS = FAILURE_MEMBERS | {
    "locations",
    "extensions",
    "field",
    "source",
    "id",
    "meta",
    "param",
}
_PROBLEM_MEMBERS = ("detail", "instance", "traceId")
_EXCEPTION_NAME = re.compile(r"(?:.*[\W_])?\w*(?:error|exception)", re.IGNORECASE)
_CODE_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)


def strip_code_fence(text: str) -> str:
    """Return the inside of a Markdown code fence if the fence is the whole text, else the text."""
    text = text.strip()
    found = _CODE_FENCE.fullmatch(text) if text.startswith("```") else None
    return found[1] if found else text


def is_failure_json(value: Any) -> bool:
    """Return whether a value reports that the call failed; data with an error among it does not."""
    if not may_be_error_object(value):
        return False
    if isinstance(value, dict):
        return _is_failure_object(value)
    return isinstance(value, list) and bool(value) and all(map(_is_issue, value))


def failure_in_text(text: str) -> Any:
    """Return the error object that a text is, also in a code fence; None if it is another text."""
    value = json_in_text(strip_code_fence(text) if text.startswith("```") else text)
    return value if is_failure_json(value) else None


def json_in_text(text: str) -> Any:
    """Return the object or array that *text* encodes as JSON, or None."""
    start = text[:1]
    if start.isspace():
        text = text.lstrip()
        start = text[:1]
    if start not in ("{", "[") or len(text) > MAX_INNER_BYTES:
        return None
    try:
        encoded = text.encode()
        return None if has_more_marks(encoded, MAX_VALUES) else msgspec.json.decode(encoded)
    except (ValueError, RecursionError):
        return None


def _is_failure_object(value: dict[str, Any]) -> bool:
    match value:
        case {"result": dict() as inner} if len(value) == 1:
            return is_failure_json(inner)
        case {"object": "error", "message": str()}:
            return True
    return _has_failure_members(value)


def _has_failure_members(value: dict[str, Any]) -> bool:
    is_not_ok = _is_not_ok(value)
    if is_not_ok and _is_error(value.get("error")):
        return True
    others = value.keys() - FAILURE_MEMBERS
    if others and not (is_not_ok and others <= _MEMBERS_BESIDE_NOT_OK):
        # `{"error": "no such table", "rows": []}`: beside the error there is nothing.
        is_empty = all(value[name] in (None, [], {}) for name in others)
        return is_empty and _is_error(value.get("error")) and value.get("success") is not True
    is_ok = value.get("success") is True or value.get("status") in ("ok", "success", 200)
    if is_ok or value.get("data") or value.get("result"):
        return False
    if is_not_ok or value.get("isError") is True:
        return True
    error = value.get("error") or value.get("errors") or value.get("errorMessages")
    if value.get("status") in ("error", "fail") and (error or value.get("message")):
        return True
    return _has_error_status(value) or _has_error_message(value) or _is_error(error)


def _is_not_ok(value: dict[str, Any]) -> bool:
    if value.get("ok") is False or value.get("success") is False:
        return True
    # `success: 0` and `success: null` deny it too, unless a status says that it is not known yet.
    return "status" not in value and value.get("success", True) in (0, None)


def _has_error_status(value: dict[str, Any]) -> bool:
    """Return whether there is an HTTP status of 4xx or 5xx, with its message or title.

    `code` counts only as a number, or beside an error message: a coupon and a room have codes too.
    """
    message, title = value.get("message"), value.get("title")
    if isinstance(message, str):
        status = [value.get(name) for name in ("status", "statusCode", "status_code")]
        status += [value.get("code")] * (is_integer(value.get("code")) or _is_error_phrase(message))
    elif isinstance(title, str):
        is_problem = any(name in value for name in _PROBLEM_MEMBERS) or _is_error_phrase(title)
        status = [value.get("status")] * is_problem
    else:
        status = []
    return any(re.fullmatch("[45][0-9][0-9]", str(each)) for each in status)


def _is_error_phrase(text: str) -> bool:
    return bool(re.fullmatch(STATUSES, text, re.IGNORECASE)) or _is_failure_text(text)


def _is_failure_text(text: str) -> bool:
    # Imported here, because its patterns take long to compile and few objects need them.
    from .failure_text import is_failure_text

    return is_failure_text(text)


def _has_error_message(value: dict[str, Any]) -> bool:
    match value:
        case {"__type": str(name), "message": str()} if _EXCEPTION_NAME.fullmatch(name):
            return True
        case {"message": str(message)} if value.keys() <= _MEMBERS_BESIDE_MESSAGE:
            name = value.get("type", "Error")
            return _is_failure_text(message) and bool(_EXCEPTION_NAME.fullmatch(str(name)))
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
            return all(isinstance(each, dict) and each.keys() <= _ITEM_MEMBERS for each in error)
    return False


def _is_issue(value: Any) -> bool:
    """Return whether this is zod's issue with an argument; the TypeScript SDK sends it as text."""
    match value:
        case {"code": str(code), "path": list(), "message": str()}:
            return "_" in code
    return False
