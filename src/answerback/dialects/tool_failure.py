"""`_meta["io.modelcontextprotocol/toolFailure"]`, which a proposal gives to failed tool calls.

It has a class, a code, whether and when to try again, an id for the operator's log, and advice for
the model. Sources: pull requests 3312 and 3313 of modelcontextprotocol, 2026-08-27; they are
drafts, so it is read always and written only under a contract with `tool_failure=True`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from ..core.json_value import is_number
from ..core.reply import Error, Reply
from ..error_codes import CODES, UNKNOWN_ERROR
from .common import is_retryable, to_utc, without_none

TOOL_FAILURE = "io.modelcontextprotocol/toolFailure"
_CAPABILITY, _RELIABILITY, _GOVERNANCE = "capability", "reliability", "governance"
_CLASSES = {401: _GOVERNANCE, 402: _GOVERNANCE, 403: _GOVERNANCE, 421: _GOVERNANCE} | {
    429: _RELIABILITY
}
"""The class of an HTTP status; of the others, those from 500 on are about reliability."""
_KINDS = {
    _CAPABILITY: "INVALID_INPUT",
    _RELIABILITY: "UNAVAILABLE",
    _GOVERNANCE: "FORBIDDEN",
}
"""The known code whose status a code of another server borrows, by its class."""
_MAX_SECONDS = 366 * 24 * 3600


def write_failure(reply: Reply[Any], error: Error) -> dict[str, Any]:
    """Return the object for a failed reply.

    The proposal requires an id: an error without a reference is found by the time of its reply.
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
    """Return the error of a result's `_meta`; None if it has none. *details* is its data."""
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
    """Return a server's code as we write codes: in capitals, with underscores."""
    code = re.sub("[^A-Z0-9]+", "_", found.upper()[:100]) if isinstance(found, str) else ""
    return code.strip("_") or UNKNOWN_ERROR


def _details(found: dict[str, Any], details: object) -> object:
    """Return the details with the reference and the seconds to wait, if they are an object."""
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
