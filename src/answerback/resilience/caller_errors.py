"""Errors that callers see when a limit or breaker refuses a call, or the service fails."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from ..core.reply import Error
from ..error_codes import CHECK_FIRST
from ..errors import RateLimited, TimedOut, Unavailable

if TYPE_CHECKING:
    from .service_failure import ServiceFailure


def unavailable(seconds: float) -> Unavailable:
    """Return an open breaker's refusal."""
    after = max(1, ceil(seconds))
    error = Unavailable(
        "Service temporarily unavailable",
        details={"retry_after": after},
        retryable=True,
        hint=f"try again {_in(after)}",
    )
    error.may_have_run = False
    return error


def rate_limited(limit: str, seconds: float) -> RateLimited:
    """Return a limit's refusal."""
    after = max(1, ceil(seconds))
    error = RateLimited(
        f"Too many calls: the limit is {limit}",
        details={"limit": limit, "retry_after": after},
        retryable=True,
        hint=f"try again {_in(after)}",
    )
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
