"""Classifies failures: whether to retry, whether the service failed, and how long to wait.

A library's exceptions are recognised by their attributes and class names, so that no HTTP library
has to be imported.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..core.json_value import is_number
from ..core.reply import REPLY_MARKS, Error, Reply
from ..dialects.returned_value import judge
from ..errors import CODES, UNKNOWN_ERROR, ToolError


class ServiceFailure(msgspec.Struct, frozen=True):
    """A failed attempt, and its consequences for the breaker and the next attempt."""

    transient: bool = False
    """Another attempt may succeed."""
    of_service: bool = False
    """The service failed, so a breaker counts it."""
    may_have_run: bool = True
    """The service may have carried out the request, so a second attempt would repeat it."""
    retry_after: float | None = None
    """The seconds the service asked us to wait."""
    timed_out: bool = False
    """The service did not respond in time."""


# The connection was never established, so no request was sent.
_NEVER_SENT = frozenset({errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH})
_BROKEN = frozenset(
    {errno.ENETDOWN, errno.ENETRESET, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN}
)
# Classes from httpx, httpx2, httpcore, requests, urllib3, aiohttp, botocore, redis, websockets and
# the standard library, by the names of the class and its bases.
_NEVER_SENT_CLASSES = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "NewConnectionError", "gaierror"}
    | {"ConnectTimeoutError", "ClientConnectorError", "NameResolutionError", "herror"}
    | {"ConnectionTimeoutError", "EndpointConnectionError"}
)
_TIMED_OUT_CLASSES = frozenset(
    {"TimeoutError", "TimeoutException", "Timeout", "ReadTimeoutError", "ServerTimeoutError"}
)
_BROKEN_CLASSES = _TIMED_OUT_CLASSES | (
    {"TransportError", "ServerDisconnectedError", "ClientPayloadError", "ProtocolError"}
    | {"IncompleteRead", "RemoteDisconnected", "BadStatusLine", "SSLError", "ConnectionError"}
    | {"ChunkedEncodingError", "ClientConnectionError", "ConnectionClosed"}
)
# These statuses mean that the request was refused without being carried out.
_REFUSED_STATUSES = frozenset({429})
_TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
PLAIN_DATA = frozenset({int, float, bool, type(None)})
"""Values of these types are never replies."""
_LONGEST = 365 * 86_400.0
"""Longer waits requested by a service are capped at this many seconds."""


def read_failure(exc: BaseException) -> ServiceFailure:
    """Classify *exc*; cancellations, questions and tool bugs are not transient."""
    try:
        if isinstance(exc, ToolError) and exc.thread_goes_on:
            # The function is still running in its thread: a second one must not run alongside it.
            return ServiceFailure(of_service=True)
        if isinstance(exc, ToolError):
            return _of_error(Error.of(exc), getattr(exc, "may_have_run", None))
        if not isinstance(exc, Exception):
            return ServiceFailure()
        return _of_group(exc) if isinstance(exc, ExceptionGroup) else _of_exception(exc)
    except Exception:  # noqa: BLE001 -- an author's exception may have properties that raise
        return ServiceFailure()


def _of_exception(exc: Exception) -> ServiceFailure:
    after = retry_after_of(exc)
    # The HTTP status is in the response (httpx, requests), in `status` (aiohttp) or, if there are
    # headers, in `code` (urllib).
    source = getattr(exc, "response", None)
    found = getattr(source, "status_code", None) or getattr(exc, "status_code", None)
    if found is None:
        found = getattr(exc, "status", None)
    if found is None and hasattr(exc, "headers"):
        found = getattr(exc, "code", None)
    status = found if isinstance(found, int) and 400 <= found <= 599 else None
    if status is not None:
        is_transient, is_done = status in _TRANSIENT_STATUSES, status not in _REFUSED_STATUSES
        return ServiceFailure(is_transient, status >= 500, is_done, after, status in (408, 504))
    chain = tuple(_with_causes(exc))
    timed_out = any(_is_one_of(each, _TIMED_OUT_CLASSES) for each in chain)
    may_have_run = getattr(exc, "may_have_run", None)
    if may_have_run is False or any(
        _is_one_of(each, _NEVER_SENT_CLASSES, _NEVER_SENT) for each in chain
    ):
        return ServiceFailure(True, True, False, after, timed_out)
    is_broken = any(_is_one_of(each, _BROKEN_CLASSES, _BROKEN) for each in chain)
    return ServiceFailure(is_broken, is_broken, True, after, timed_out)


def _of_group(group: ExceptionGroup[Exception]) -> ServiceFailure:
    """Classify a task group's exceptions as one failure."""
    parts = [read_failure(each) for each in group.exceptions]
    return ServiceFailure(
        transient=all(each.transient for each in parts),
        of_service=any(each.of_service for each in parts),
        may_have_run=any(each.may_have_run for each in parts),
        retry_after=max(each.retry_after or 0.0 for each in parts) or None,
        timed_out=all(each.timed_out for each in parts),
    )


def read_value(value: object, finished: bool = True) -> ServiceFailure | None:
    """Return the failure in a returned reply; None if it succeeded.

    *finished* says whether other values may be finished replies; otherwise they are data.
    """
    if type(value) is Reply:
        return None if value.error is None else _of_error(value.error)
    if not finished or (isinstance(value, dict) and value.keys().isdisjoint(REPLY_MARKS)):
        return None
    verdict, found = judge(value)
    if verdict != "failure":
        return None
    # Imported here, because few tools return failures.
    from ..reading import read

    return _of_error(read(found).error or Error(UNKNOWN_ERROR, ""))


def _of_error(error: Error, may_have_run: bool | None = None) -> ServiceFailure:
    row = error.row
    retryable = row.retryable if error.retryable is None else error.retryable
    # A plain ToolError is the author's refusal; only a code says that the service failed.
    is_named = error.code in CODES and error.code != UNKNOWN_ERROR
    is_named = is_named or (error.kind is not None and error.kind != UNKNOWN_ERROR)
    stated = _member(error.details, "may_have_run")
    if may_have_run is None and isinstance(stated, bool):
        # The client says so in the details of its failed replies.
        may_have_run = stated
    if may_have_run is None:
        may_have_run = row.status not in _REFUSED_STATUSES
    after = read_seconds(_member(error.details, "retry_after"))
    return ServiceFailure(retryable, is_named and row.status >= 500, may_have_run, after)


def retry_after_of(exc: BaseException) -> float | None:
    """Return the seconds in `exc.retry_after`, in its details, or in its response's header."""
    found = getattr(exc, "retry_after", None)
    if found is None:
        found = _member(getattr(exc, "details", None), "retry_after")
    if found is None:
        response = getattr(exc, "response", None)
        # A `requests` response with a status of 400 or above is falsy.
        headers = getattr(exc if response is None else response, "headers", None)
        get = getattr(headers, "get", None)
        found = get("Retry-After") if callable(get) else None
    return read_seconds(found)


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def read_seconds(value: Any) -> float | None:
    """Return a number of seconds, or a header's date as seconds from now."""
    if not isinstance(value, str):
        return float(min(value, _LONGEST)) if is_number(value) and value >= 0 else None
    if value.isascii() and value.strip().isdigit():
        return min(float(value), _LONGEST)
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), _LONGEST)


def _with_causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield the exception, and any exceptions that a library wrapped in it."""
    found: Any = exc
    for _ in range(5):
        yield found
        inner = (getattr(found, "reason", None), found.__cause__, *found.args[:1])
        found = next((each for each in inner if isinstance(each, BaseException)), None)
        if found is None:
            return


def _is_one_of(
    exc: BaseException, names: frozenset[str], numbers: frozenset[int] = frozenset()
) -> bool:
    """Return whether one of *exc*'s classes has one of the names, or `errno` is in *numbers*."""
    if isinstance(exc, OSError) and exc.errno in numbers:
        return True
    return not names.isdisjoint(each.__name__ for each in type(exc).__mro__)
