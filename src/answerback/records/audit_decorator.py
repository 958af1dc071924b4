"""The `audit` decorator, which checks and records any function's replies."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from functools import wraps
from time import perf_counter_ns, time
from typing import Any, ParamSpec, TypeVar, get_args, overload

import msgspec

from ..contract import Dialect
from ..core.log import logger
from ..core.reply import Reply
from ..rules import validate
from ..verdicts.forms import code_of
from .event import ISSUE, Sink
from .jsonl import LOGGER, log_event
from .recorder import CallRecord, Records, findings_in, make_event, reply_size

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Reply[Any] | dict[str, Any])
_encode = msgspec.json.Encoder(enc_hook=repr).encode
_FORMS = (
    "write @audit, @audit('name'), @audit(records=records), audit('name', fn) "
    "or audit('name', reply)"
)


@overload
def audit(fn: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def audit(
    name: str,
    fn: Callable[P, T],
    /,
    *,
    records: Records | Sink | None = None,
    dialect: Dialect | None = None,
) -> Callable[P, T]: ...
@overload
def audit(
    name: str,
    reply: R,
    /,
    *,
    records: Records | Sink | None = None,
    dialect: Dialect | None = None,
) -> R: ...
@overload
def audit(
    name_or_records: str | Records | Sink | None = None,
    /,
    *,
    name: str | None = None,
    records: Records | Sink | None = None,
    dialect: Dialect | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
def audit(
    first: Any = None,
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    records: Records | Sink | None = None,
    dialect: Dialect | None = None,
) -> Any:
    """Check and record each value that a function returns; the value is returned unchanged.

    Use it as `@audit`, `@audit("name")`, `@audit(records)`, `@audit(name=…, records=…)`, or
    `audit("name", fn)`; `audit("name", reply)` checks an existing reply and returns it.
    *name* is the name in the records, by default the function's. Without *records*, only replies
    with findings are logged, to the `answerback.records` logger. *dialect* is the replies' format;
    by default, each reply is read as an envelope or an MCP result, depending on its members.
    """
    if isinstance(first, str) and name is None:
        name = first
    elif _is_records_or_sink(first) and records is None:
        records = first
    elif callable(first) and fn is None:
        fn = first
    elif first is not None:
        raise TypeError(f"audit takes a function, a name or records, not {first!r}: {_FORMS}")
    # Refuse wrong types when the decorator is applied, not on the first call.
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string, not {name!r}")
    if records is not None and not _is_records_or_sink(records):
        raise TypeError(f"records must be Records or a sink, not {records!r}")
    if dialect is not None and dialect not in get_args(Dialect):
        raise TypeError(f"dialect={dialect!r} should be one of {', '.join(get_args(Dialect))}")
    if records is not None and not isinstance(records, Records):
        records = Records(records)
    auditor = _Auditor(name, records, dialect)
    if isinstance(fn, Reply | dict):
        return auditor.check(fn)
    return auditor.decorate if fn is None else auditor.decorate(fn)


def _is_records_or_sink(value: object) -> bool:
    # A Path also has an `open` method, but is not a sink.
    is_sink = hasattr(value, "open") and not isinstance(value, type | os.PathLike)
    return is_sink or isinstance(value, Records)


class _Auditor(msgspec.Struct, frozen=True):
    """A recorder for function calls."""

    name: str | None
    records: Records | None
    dialect: Dialect | None

    def check(self, reply: T) -> T:
        """Check and record an existing reply."""
        self._finish(self._start(self.name or "", (), {}), reply)
        return reply

    def decorate(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        if not callable(fn):
            raise TypeError(f"audit takes a function, not {fn!r}: {_FORMS}")
        name = self.name or str(getattr(fn, "__name__", fn))
        if inspect.iscoroutinefunction(fn):

            @wraps(fn)
            async def async_wrapper(*args: object, **kwargs: object) -> Any:
                return await self._await(self._start(name, args, kwargs), fn(*args, **kwargs))

            return async_wrapper

        @wraps(fn)
        def wrapper(*args: object, **kwargs: object) -> Any:
            record = self._start(name, args, kwargs)
            try:
                reply = fn(*args, **kwargs)
            except BaseException as exc:
                self._finish_raised(record, exc)
                raise
            if inspect.isawaitable(reply):
                return self._await(record, reply)
            self._finish(record, reply)
            return reply

        return wrapper

    async def _await(self, record: CallRecord, awaitable: Awaitable[Any]) -> Any:
        try:
            reply = await awaitable
        except BaseException as exc:
            self._finish_raised(record, exc)
            raise
        self._finish(record, reply)
        return reply

    def _start(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallRecord:
        """Return a record whose `duration_ns` holds the start time until it is finished."""
        arguments = b""
        if self.records is not None:
            arguments = _bytes({"args": args, **kwargs} if args else kwargs)
        return CallRecord("tool", name, "function", arguments, time(), perf_counter_ns())

    def _finish(self, record: CallRecord, reply: object) -> None:
        record.reply = reply
        if isinstance(reply, Reply):
            record.size = reply_size(reply)
            record.code = "" if reply.error is None else reply.error.code
        else:
            record.size = len(_bytes(reply))
            record.code = code_of(reply)
            if self.dialect is not None:
                record.findings = validate(reply, self.dialect)
        self._add(record)

    def _finish_raised(self, record: CallRecord, exc: BaseException) -> None:
        record.code = type(exc).__name__
        self._add(record)

    def _add(self, record: CallRecord) -> None:
        record.duration_ns = perf_counter_ns() - record.duration_ns
        if self.records is not None:
            self.records.add(record)
        elif record.reply is not None:
            findings = findings_in(record) if record.findings is None else record.findings
            event = make_event(record, findings, {})
            if event.event == ISSUE:
                log_event(logger(LOGGER), event, b"")


def _bytes(value: object) -> bytes:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode()
