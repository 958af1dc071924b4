"""Reads a failure: may it be tried again, did the service fail, and when should one come back.

A library's exceptions are recognised by their attributes and the names of their classes, so that no
HTTP library is imported for this.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import msgspec

from ..errors import CODES, UNKNOWN_ERROR, ToolError
from ..reply import Error, Reply


class ServiceFailure(msgspec.Struct, frozen=True):
    """The meaning of a failed attempt for the breaker and for the next attempt."""

    transient: bool = False
    """Another attempt may succeed."""
    of_service: bool = False
    """The service failed: a breaker counts it."""
    may_have_run: bool = True
    """The service may have done what it was asked for, so that a second attempt would repeat it."""
    retry_after: float | None = None
    """The seconds that the service asked to wait."""


# The connection was never made, so that nothing was asked for.
_NEVER_SENT = frozenset({errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH})
_BROKEN = frozenset(
    {errno.ENETDOWN, errno.ENETRESET, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN}
)
# Classes of httpx, httpx2, httpcore, requests, urllib3, aiohttp and the standard library.
_NEVER_SENT_CLASSES = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "NewConnectionError", "gaierror"}
    | {"ConnectTimeoutError", "ClientConnectorError", "NameResolutionError", "herror"}
)
_BROKEN_CLASSES = frozenset(
    {"TransportError", "ServerDisconnectedError", "ClientPayloadError", "ProtocolError"}
    | {"IncompleteRead", "RemoteDisconnected", "BadStatusLine", "SSLError", "ReadTimeoutError"}
)
# These statuses say that the request was refused without being carried out.
_REFUSED_STATUSES = frozenset({429})
_TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


def read_failure(exc: BaseException) -> ServiceFailure:
    """The meaning of *exc*; a cancellation, a question and a bug of the tool are not transient."""
    if isinstance(exc, ToolError) and exc.thread_goes_on:
        # The function goes on in its thread: a second one must not run beside it.
        return ServiceFailure(of_service=True)
    if isinstance(exc, ToolError):
        return _of_error(Error.of(exc), getattr(exc, "may_have_run", None))
    if not isinstance(exc, Exception):
        return ServiceFailure()
    after = retry_after_of(exc)
    status = _status_of(exc)
    if status is not None:
        return ServiceFailure(
            status in _TRANSIENT_STATUSES, status >= 500, status not in _REFUSED_STATUSES, after
        )
    may_have_run = getattr(exc, "may_have_run", None)
    if may_have_run is False or any(map(_was_never_sent, _with_causes(exc))):
        return ServiceFailure(True, True, False, after)
    is_broken = any(map(_is_broken, _with_causes(exc)))
    return ServiceFailure(is_broken, is_broken, True, after)


def read_value(value: Any) -> ServiceFailure | None:
    """The failure in a reply that a tool returned; None if it is no failure."""
    if type(value) is not Reply or value.error is None:
        return None
    return _of_error(value.error)


def _of_error(error: Error, may_have_run: bool | None = None) -> ServiceFailure:
    row = error.row
    retryable = row.retryable if error.retryable is None else error.retryable
    # A plain ToolError is the author's refusal; only a code says that the service failed.
    is_named = error.code in CODES and error.code != UNKNOWN_ERROR
    is_named = is_named or (error.kind is not None and error.kind != UNKNOWN_ERROR)
    stated = _member(error.details, "may_have_run")
    if may_have_run is None and isinstance(stated, bool):
        # The client states it in the details of its failed replies.
        may_have_run = stated
    if may_have_run is None:
        may_have_run = row.status not in _REFUSED_STATUSES
    after = read_seconds(_member(error.details, "retry_after"))
    return ServiceFailure(retryable, is_named and row.status >= 500, may_have_run, after)


def retry_after_of(exc: BaseException) -> float | None:
    """The seconds of `exc.retry_after`, of its details, or of the header of its response."""
    own = getattr(exc, "retry_after", None)
    if own is None:
        own = _member(getattr(exc, "details", None), "retry_after")
    if own is None:
        source = getattr(exc, "response", None) or exc
        headers = getattr(source, "headers", None)
        get = getattr(headers, "get", None)
        own = get("Retry-After") if callable(get) else None
    return read_seconds(own)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def read_seconds(value: Any) -> float | None:
    """A number of seconds, or the date of a header as seconds from now."""
    if isinstance(value, str):
        if value.strip().isdigit():
            return float(value)
        return _seconds_until(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value >= 0 else None


def _seconds_until(date: str) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _status_of(exc: BaseException) -> int | None:
    """The HTTP status in an exception of httpx, requests, aiohttp or urllib."""
    source = getattr(exc, "response", None)
    found = getattr(source, "status_code", None) or getattr(exc, "status_code", None)
    if found is None:
        found = getattr(exc, "status", None)
    if found is None and hasattr(exc, "headers"):
        found = getattr(exc, "code", None)
    return found if isinstance(found, int) and 400 <= found <= 599 else None


def _with_causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception, and those that a library wrapped in it."""
    found: Any = exc
    for _ in range(5):
        yield found
        reason = getattr(found, "reason", None)
        found = reason if isinstance(reason, BaseException) else found.__cause__
        if not isinstance(found, BaseException):
            return


def _was_never_sent(exc: BaseException) -> bool:
    if isinstance(exc, OSError) and exc.errno in _NEVER_SENT:
        return True
    return not _NEVER_SENT_CLASSES.isdisjoint(each.__name__ for each in type(exc).__mro__)


def _is_broken(exc: BaseException) -> bool:
    if isinstance(exc, ConnectionError | TimeoutError):
        return True
    if isinstance(exc, OSError) and exc.errno in _BROKEN:
        return True
    return not _BROKEN_CLASSES.isdisjoint(each.__name__ for each in type(exc).__mro__)
