"""Errors that callers see when a limit or breaker refuses a call, or the service fails."""

from __future__ import annotations

from math import ceil
from typing import TypeVar

from ..core.json_value import JsonObject
from ..core.reply import Error
from ..error_codes import CHECK_FIRST
from ..errors import RateLimited, TimedOut, ToolError, Unavailable
from .service_failure import ServiceFailure

E = TypeVar("E", bound=ToolError)


def unavailable(seconds: float) -> Unavailable:
    """Return an open breaker's refusal."""
    return _refusal(Unavailable, "Service temporarily unavailable", {}, seconds)


def rate_limited(limit: str, seconds: float) -> RateLimited:
    """Return a limit's refusal."""
    message = f"Too many calls: the limit is {limit}"
    return _refusal(RateLimited, message, {"limit": limit}, seconds)


def _refusal(kind: type[E], message: str, details: JsonObject, seconds: float) -> E:
    after = max(1, ceil(seconds))
    details["retry_after"] = after
    error = kind(message, details=details, retryable=True, hint=f"try again {_in(after)}")
    error.may_have_run = False
    return error


def _in(seconds: int) -> str:
    return "in 1 second" if seconds == 1 else f"in {seconds} seconds"


def service_failed(failure: ServiceFailure, may_repeat: bool) -> Error:
    """Return the error for a library's exception, whose own text is not shown.

    *may_repeat* says whether the call may be repeated.
    """
    code, message = Unavailable.code, "A service that this tool needs is unavailable"
    if failure.timed_out:
        code, message = TimedOut.code, "A service that this tool needs did not answer in time"
    retryable = may_repeat or not failure.may_have_run
    after = None if failure.retry_after is None else max(1, ceil(failure.retry_after))
    hint = "try again later" if after is None else f"try again {_in(after)}"
    if not retryable:
        hint = CHECK_FIRST
    details = None if after is None else {"retry_after": after}
    return Error(code, message, details, retryable, hint)
