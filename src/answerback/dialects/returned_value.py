"""Decides whether a function's return value is a failure, a finished reply or data.

`wrap`, tools, and the breakers and retries around tools all call `judge`, so they agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from ..core.content import Text, is_block, is_result
from ..core.json_value import is_number
from ..core.reply import Error, Reply
from ..errors import CODES, UNKNOWN_ERROR
from ..types.annotation_reader import object_members
from ..types.output import Output
from ..verdicts.forms import finished_dialect, result_in_mcp_names
from ..verdicts.judge import failure_in_text, is_failure_json, json_in_text
from ..verdicts.texts import failure_line
from .common import is_retryable, to_utc, without_added, without_none
from .foreign_blocks import own_block, result_object

TOOL_FAILURE = "io.modelcontextprotocol/toolFailure"
_CAPABILITY, _RELIABILITY, _GOVERNANCE = "capability", "reliability", "governance"
_CLASSES = {401: _GOVERNANCE, 402: _GOVERNANCE, 403: _GOVERNANCE, 421: _GOVERNANCE} | {
    429: _RELIABILITY
}
"""The class of an HTTP status; others are reliability from 500 up, and capability below."""
_KINDS = {
    _CAPABILITY: "INVALID_INPUT",
    _RELIABILITY: "UNAVAILABLE",
    _GOVERNANCE: "FORBIDDEN",
}
"""The known code whose status another server's code borrows, by class."""
_MAX_SECONDS = 366 * 24 * 3600


def write_failure(reply: Reply[Any], error: Error) -> dict[str, Any]:
    """Return the object for a failed reply.

    The proposal requires an id: an error without a reference is identified by its timestamp.
    """
    details = error.details if isinstance(error.details, dict) else {}
    moment = to_utc(reply.timestamp)
    return {
        "class": class_of(error),
        "code": error.code,
        "retryable": is_retryable(error),
        **without_none(retryNotBefore=_not_before(moment, details.get("retry_after"))),
        "correlationId": _reference(details) or f"{round(moment.timestamp() * 1e6):x}",
        **without_none(agentGuidance=error.hint),
    }


def class_of(error: Error) -> str:
    """Return whether an error is about capability, reliability or governance."""
    status = error.row.status
    return _CLASSES.get(status, _RELIABILITY if status >= 500 else _CAPABILITY)


def read_failure(meta: object, message: str, details: object) -> Error | None:
    """Return the error in a result's `_meta`, or None. *details* is the result's data."""
    found = meta.get(TOOL_FAILURE) if isinstance(meta, dict) else None
    if not isinstance(found, dict):
        return None
    code = _code(found.get("code"))
    retryable, hint = found.get("retryable"), found.get("agentGuidance")
    return Error(
        code,
        message,
        _details(found, details),
        retryable if isinstance(retryable, bool) else None,
        hint if isinstance(hint, str) and hint else None,
        None if code in CODES and code != UNKNOWN_ERROR else _KINDS.get(str(found.get("class"))),
    )


def _code(found: object) -> str:
    """Return a server's code in our format: uppercase, with underscores."""
    code = re.sub("[^A-Z0-9]+", "_", found.upper()[:100]) if isinstance(found, str) else ""
    return code.strip("_") or UNKNOWN_ERROR


def _details(found: dict[str, Any], details: object) -> object:
    """Add the reference and the seconds to wait to the details; return a non-object unchanged."""
    if details is not None and not isinstance(details, dict):
        return details
    reference = found.get("correlationId")
    members = without_none(
        retry_after=_seconds_until(found.get("retryNotBefore")),
        reference=reference if isinstance(reference, str) and reference else None,
    )
    return {**members, **(details or {})} or None


def _seconds_until(moment: object) -> int | None:
    if not isinstance(moment, str):
        return None
    try:
        seconds = (to_utc(datetime.fromisoformat(moment)) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None
    return max(0, ceil(seconds)) if seconds < _MAX_SECONDS else None


def _not_before(moment: datetime, seconds: object) -> datetime | None:
    if not is_number(seconds) or not 0 <= seconds < _MAX_SECONDS:
        return None
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _reference(details: dict[str, Any]) -> str | None:
    found = details.get("reference")
    return found if isinstance(found, str) and found else None


Kind: TypeAlias = Literal["failure", "reply", "data"]


def judge(
    value: object, arguments: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Kind, dict[str, Any]]:
    """Return what a function's return value is, and the object that it is about.

    The object is empty for data. For a failure, it is the error object, wherever it is in *value*:
    in text, in a result's data or in `{"result": …}`. *arguments* are the call's.
    """
    if isinstance(value, list):
        return ("failure", {"errors": value}) if is_failure_json(value) else ("data", {})
    found: dict[str, Any] = _object_in(value, arguments)
    dialect = finished_dialect(found)
    # A tool that returns an envelope's flag means it, even without a message.
    is_failed_envelope = dialect is not None and found.get("success") is False
    if is_failed_envelope or is_failure_json(found, arguments):
        return "failure", _error_object(found)
    if dialect is None:
        return "data", found
    # A failure needs less evidence than a finished reply: it must not be sent as a success.
    return ("reply", found) if _stated_failure(found) is None else ("failure", _error_object(found))


def _object_in(value: object, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object to judge; empty for a value that can only be data."""
    match value:
        case str():
            inside = json_in_text(value)
            if is_failure_json(inside, arguments) or _is_result(inside):
                return _object_in(inside, arguments)
            line = failure_line(value) if inside is None else None
            return {} if line is None else {"error": line}
        case list():
            # The items of a list that failed as a whole are its errors.
            return {"success": False, "errors": value}
    members = result_object(value) if is_result(value) else object_members(value)
    found: dict[str, Any] = result_in_mcp_names(members)
    blocks = found.get("content")
    if not isinstance(blocks, list | tuple):
        return found
    if found is value and not any(map(is_block, blocks)):
        return found
    return {
        **found,
        "content": [own_block(each) if is_block(each) else _plain(each) for each in blocks],
    }


def _is_result(found: Any) -> bool:
    if not isinstance(found, dict):
        return False
    found = result_in_mcp_names(found)
    return bool(found.get("content")) and finished_dialect(found) == "mcp"


def _plain(value: object) -> Any:
    return value if isinstance(value, dict) else Output(Any).encode(value)[1]


def _error_object(found: dict[str, Any]) -> dict[str, Any]:
    match found:
        case {"result": dict(inner)} if len(found) == 1:
            return _error_object(inner)
        case {"result": list(items)} | {"results": list(items)} if "error" not in found:
            found = {name: each for name, each in found.items() if each is not items}
            return {**found, "errors": items}
    stated = _stated_failure(found)
    if stated is None:
        return found
    error = {"errors": stated} if isinstance(stated, list) else _error_object(stated)
    return error | {"meta": found["_meta"]} if found.get("_meta") else error


def _stated_failure(found: dict[str, Any]) -> Any:
    """Return the error object in a result's data or in one of its text blocks, or None."""
    data = without_added(found.get("structuredContent"), found.get("_meta"))
    if is_failure_json(data):
        return data
    content = found.get("content")
    for block in content if isinstance(content, list | tuple) else ():
        text = block.text if isinstance(block, Text) else _text_of(block)
        if isinstance(text, str) and (failure := failure_in_text(text)) is not None:
            return failure
    return None


def _text_of(block: Any) -> Any:
    return block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
