"""Makes an `Error` from what other servers send: JSON-RPC errors, error objects, coded text."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec

from ..core.reply import Error, Reply
from ..dialects.common import author_meta
from ..dialects.mcp_blocks import read_block
from ..errors import (
    CODES,
    INPUT_REQUIRED,
    INVALID_ARGUMENTS,
    INVALID_JSON,
    TOOL_NOT_FOUND,
    UNKNOWN_ERROR,
    UNKNOWN_TEXT,
    MalformedReply,
    code_for_status,
)
from .sources import load_json

TASK_CREATED = "TASK_CREATED"
UNKNOWN_RESULT_TYPE = "UNKNOWN_RESULT_TYPE"
_RPC_CODES = {
    -32700: INVALID_JSON,
    -32600: "INVALID_REQUEST",
    -32601: "METHOD_NOT_FOUND",
    -32602: INVALID_ARGUMENTS,
    -32603: UNKNOWN_ERROR,
    -32002: "NOT_FOUND",
    -32042: INPUT_REQUIRED,
    -32800: "CANCELLED",
    -32801: "TOO_LARGE",
    -32802: "UNAVAILABLE",
}
_KINDS = {"INVALID_REQUEST": "INVALID_INPUT", "METHOD_NOT_FOUND": "NOT_FOUND"}
# Messages from the official SDKs and FastMCP, sent as an error or as a result's text.
_ERROR = r"(?:MCP error -\d{1,9}: |Error: ){0,3}"
_UNKNOWN_TOOL = re.compile(
    _ERROR + r"(?:unknown tool\b|no such tool\b|no tool (?:named|called)\b"
    r"|tool (?:.{0,200} )?not found\s*(?:[.:;!,(]|$))",
    re.IGNORECASE,
)
_UNKNOWN_ENTRY = re.compile(
    _ERROR + r"(?:(?:unknown|no such) (?:resource|prompt)\b|(?:resource|prompt) .{0,500}not found)",
    re.IGNORECASE,
)
_WRONG_ARGUMENTS = re.compile(
    _ERROR + r"(?:Error (?:executing|calling) tool [^:\n]{1,200}: )?"
    r"(?:input validation error\b|\d{1,4} validation errors? for \S"
    r"|invalid (?:arguments|parameters|params)\b|missing required (?:argument|parameter)s?\b"
    # Google's toolbox, and how servers using the TypeScript SDK report zod's issues.
    r"|(?:the )?provided parameters were invalid\b|invalid input: \["
    r"|invalid [\w.\[\]]{1,100}: required\b)",
    re.IGNORECASE,
)
_VAGUE_CODES = {INVALID_ARGUMENTS, UNKNOWN_ERROR, "INVALID_REQUEST", "METHOD_NOT_FOUND"}
"""The JSON-RPC codes that servers also use for an unknown tool."""
# The `standard` convention's error format: `CODE: message (details)`.
_CODED = re.compile(r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*): (.*)", re.DOTALL)
# The TypeScript SDK's error format in a result's text.
_NUMBERED = re.compile(r"MCP error (-\d{1,9}): (.+)", re.DOTALL)
_MESSAGES = (
    *("message", "msg", "errorMessage", "error_message", "error_description", "detail"),
    *("reason", "description", "title"),
)
_CODE_NAMES = ("code", "errorCode", "error_code", "errorType", "error_type", "__type", "type")
_STATUS_NAMES = ("status", "statusCode", "status_code", "code")
_ERRORS = ("error", "errors", "errorMessages", "detail", "results")
"""The members that hold an error, or a list of errors."""
_MAX_ITEMS = 20
_MAX_ITEM = 200
_MAX_SEARCHED = 1000
_NOT_DETAILS = frozenset(
    {*_MESSAGES, *_CODE_NAMES, *_STATUS_NAMES, "error", "success", "ok", "isError", "content"}
    | {"timestamp", "_meta", "meta", "details", "retryable", "hint", "kind"}
)


def json_rpc_error(found: Any) -> Error:
    """Return a JSON-RPC response's error, with its number and data in the details."""
    if not isinstance(found, dict):
        return Error(UNKNOWN_ERROR, found if isinstance(found, str) else UNKNOWN_TEXT, found)
    number, message = found.get("code"), found.get("message")
    data: Any = found.get("data")
    text = message if isinstance(message, str) and message else UNKNOWN_TEXT
    code = _RPC_CODES.get(number, UNKNOWN_ERROR) if isinstance(number, int) else UNKNOWN_ERROR
    if code in _VAGUE_CODES:
        # Since 2026-07-28, only the URI shows that an error is about a resource.
        is_uri = code == INVALID_ARGUMENTS and isinstance(data, dict) and data.keys() == {"uri"}
        is_missing = is_uri or _UNKNOWN_ENTRY.match(text[:_MAX_SEARCHED])
        code = "NOT_FOUND" if is_missing else _code_of_text(text) or code
    details = {name: each for name, each in found.items() if name != "message"}
    named = data.get("code") if isinstance(data, dict) else None
    if not isinstance(named, str) or not re.fullmatch("[A-Z][A-Z0-9_]{0,99}", named):
        return Error(code, text, details, kind=_KINDS.get(code))
    # The server put the members of an error in the data.
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in CODES:
        kind = _KINDS.get(code) or code
    return Error(
        named,
        text,
        data.get("details", details),
        _first_of([data], "retryable", bool),
        _first_of([data], "hint", str),
        None if named in CODES else kind,
    )


def unlisted_tool(error: Error) -> Error:
    """Return an unlisted tool's error, with the code for an unknown tool if its own is vague."""
    if error.code not in _VAGUE_CODES:
        return error
    return msgspec.structs.replace(error, code=TOOL_NOT_FOUND, kind=None)


def _code_of_text(text: str) -> str | None:
    """Return the code for a message in one of the SDKs' formats, or None."""
    text = text[:_MAX_SEARCHED]
    if _UNKNOWN_TOOL.match(text):
        return TOOL_NOT_FOUND
    if _WRONG_ARGUMENTS.match(text):
        return INVALID_ARGUMENTS
    return None


def pending_error(found: dict[str, Any]) -> Error | None:
    """Return the error for an incomplete result: a question, a task or an unknown type."""
    result_type = found.get("resultType", "complete")
    if result_type == "complete":
        is_task = isinstance(found.get("task"), dict) and "taskId" in found["task"]
        if not is_task or "content" in found:
            return None
        return task_error(found["task"])
    details = {name: each for name, each in found.items() if name not in ("resultType", "_meta")}
    match result_type:
        case "input_required":
            requests = found.get("inputRequests")
            count = len(requests) if isinstance(requests, dict) else 0
            message = f"the server needs input before it can continue ({count} questions)"
            return Error(INPUT_REQUIRED, message, details)
        case "task":
            return task_error(details)
    details["resultType"] = result_type
    message = f"the result has an unknown type: {str(result_type)[:60]!r}"
    return Error(UNKNOWN_RESULT_TYPE, message, details, kind="INVALID_RESPONSE_FORMAT")


def task_error(task: dict[str, Any]) -> Error:
    """Return the error for a reply that says only that a task is still running."""
    name, status = str(task.get("taskId"))[:60], str(task.get("status"))[:60]
    message = f"the server is working on it in task {name!r}, with status {status!r}"
    return Error(TASK_CREATED, message, task, kind="CONFLICT")


def object_error(found: Any) -> Error:
    """Return the error in an object such as `{"success": false, "error": …}`, in any variant."""
    # A list holds zod's issues with the arguments.
    code_of_list = INVALID_ARGUMENTS if isinstance(found, list) else None
    if isinstance(found, list):
        found = {"errors": found}
    if found.keys() == {"result"} and isinstance(found["result"], dict):
        found = found["result"]
    inner = next((found[name] for name in _ERRORS if found.get(name)), None)
    places = [inner, found] if isinstance(inner, dict) else [found]
    message = _first_text(places, _MESSAGES)
    code = _first_text(places, _CODE_NAMES)
    if code is not None and (":" in code or code.isdecimal()):
        # It is the URI of a problem type, or a number.
        code = None
    if isinstance(inner, str) and inner.strip():
        is_code = message is not None and re.fullmatch("[A-Z][A-Z0-9_]*", inner) is not None
        code, message = (inner, message) if is_code else (code, inner)
    elif isinstance(inner, list):
        message = message or "; ".join(filter(None, map(_item_text, inner[:_MAX_ITEMS])))
    status = _status(places)
    kind = code_for_status(status) if status is not None else None
    message = message or UNKNOWN_TEXT
    code = code or kind or code_of_list or _code_of_text(message) or UNKNOWN_ERROR
    return Error(
        code,
        message,
        _details(places),
        _first_of(places, "retryable", bool),
        _first_of(places, "hint", str),
        None if code in CODES else kind,
    )


def error_in_text(text: str) -> Error | None:
    """Return the error in text such as `CODE: message (details)`, or None if no code matches."""
    if (numbered := _NUMBERED.fullmatch(text)) is not None:
        return json_rpc_error({"code": int(numbered[1]), "message": numbered[2]})
    found = _CODED.fullmatch(text)
    if found is None or ("_" not in found[1] and found[1] not in CODES):
        code = _code_of_text(text)
        return None if code is None else Error(code, text)
    message, details = found[2], None
    if message.endswith(")") and " (" in message:
        before, _, inside = message.partition(" (")
        if inside.startswith(("{", "[", '"')):
            with suppress(MalformedReply):
                details = load_json(inside[:-1])
        message = message if details is None else before
    return Error(found[1], message, details)


def _first_text(places: list[Any], names: tuple[str, ...]) -> str | None:
    found = (place.get(name) for place in places for name in names)
    return next((each for each in found if isinstance(each, str) and each.strip()), None)


def _first_of(places: list[Any], name: str, kind: type) -> Any:
    found = (place.get(name) for place in places)
    return next((each for each in found if isinstance(each, kind)), None)


def _item_text(item: Any) -> str | None:
    """Return the message of one of several errors, prefixed with the path it is about."""
    if not isinstance(item, dict):
        return str(item)[:_MAX_ITEM]
    text = _first_text([item], ("error", *_MESSAGES))
    path = item.get("loc") or item.get("path")
    if text is None or not isinstance(path, list):
        return text
    return f"{'.'.join(map(str, path))}: {text}"[:_MAX_ITEM]


def _status(places: list[Any]) -> int | None:
    found = (place.get(name) for place in places for name in _STATUS_NAMES)
    words = (str(each) for each in found if isinstance(each, int | str))
    return next((int(each) for each in words if re.fullmatch("[45][0-9]{2}", each)), None)


def _details(places: list[Any]) -> Any:
    """Return the details unchanged, or an object with the members that belong nowhere else."""
    for place in places:
        if place.get("details") is not None:
            return place["details"]
    merged: dict[str, Any] = {}
    for place in reversed(places):
        for name, each in place.items():
            # A list of errors belongs nowhere else.
            is_list_of_errors = name in _ERRORS and isinstance(each, list) and bool(each)
            if name not in _NOT_DETAILS or is_list_of_errors:
                merged[name] = each
    return merged or None


def other_result(found: Any) -> Reply[Any] | None:
    """Return the reply for a resource or a task without a result, or None for any other value."""
    match found:
        case {"contents": [_, *_] as items} if all(map(_is_resource, items)):
            try:
                blocks = [read_block({"type": "resource", "resource": item}) for item in items]
            except MalformedReply:
                return None
            return Reply(content=tuple(blocks), meta=author_meta(found.get("_meta")))
        case {"taskId": str(), "status": str(status), "createdAt": str()}:
            task = {name: each for name, each in found.items() if name != "_meta"}
            error = _error_of_task(task, status)
            return None if error is None else Reply(error=error)
    return None


def inner_result(found: Any) -> Any:
    """Return the result in a completed task or in `toolResult`, or UNSET."""
    match found:
        case {"toolResult": inner} if found.keys() <= {"toolResult", "_meta"}:
            return inner
        case {"taskId": str(), "status": "completed", "createdAt": str(), "result": dict(inner)}:
            return inner
    return msgspec.UNSET


def _is_resource(item: Any) -> bool:
    match item:
        case {"uri": str(), "text": str()} | {"uri": str(), "blob": str()}:
            return True
    return False


def _error_of_task(task: dict[str, Any], status: str) -> Error | None:
    match status:
        case "working" | "input_required":
            return task_error(task)
        case "cancelled":
            return Error("CANCELLED", f"the task {task['taskId'][:60]!r} was cancelled", task)
        case "failed":
            if isinstance(task.get("error"), dict):
                return json_rpc_error(task["error"])
            message = task.get("statusMessage")
            return Error(UNKNOWN_ERROR, message if isinstance(message, str) else UNKNOWN_TEXT, task)
    return None
