"""`audit`: any function, with each of its replies checked and recorded."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from functools import wraps
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import msgspec

from .call_record import Answered, event_of, size_of
from .event import ISSUE

if TYPE_CHECKING:
    from .recorder import Records
    from .sink import Sink

P = ParamSpec("P")
T = TypeVar("T")
_encode = msgspec.json.Encoder(enc_hook=repr).encode


@overload
def audit(fn: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def audit(
    name: str, fn: Callable[P, T], /, *, records: Records | Sink | None = None
) -> Callable[P, T]: ...
@overload
def audit(
    name_or_records: str | Records | Sink | None = None,
    /,
    *,
    name: str | None = None,
    records: Records | Sink | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
def audit(
    first: Any = None,
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    records: Records | Sink | None = None,
) -> Any:
    """Check what a function gives back and record it; it is given back unchanged.

    `@audit`, `@audit("name")`, `@audit(records)`, both by name, or `audit("name", fn)`. Without
    *records* only findings are recorded, in the log `answerback.records`.
    """
    if isinstance(first, str) and name is None:
        name = first
    elif _keeps(first) and records is None:
        records = first
    elif callable(first) and fn is None:
        fn = first
    elif first is not None:
        raise TypeError(f"audit takes a function, a name or records, not {first!r}: {_FORMS}")
    _refuse_others(fn, name, records)
    note = _Note(name, _records(records))
    return note.audited if fn is None else note.audited(fn)


_FORMS = "write @audit, @audit('name'), @audit(records=records) or audit('name', fn)"


def _refuse_others(fn: Any, name: Any, records: Any) -> None:
    """Now, and not at some later call."""
    if fn is not None and not callable(fn):
        raise TypeError(f"audit takes a function, not {fn!r}: {_FORMS}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be text, not {name!r}")
    if records is not None and not _keeps(records):
        raise TypeError(f"records must be Records or a sink, not {records!r}")


def _keeps(value: Any) -> bool:
    from .recorder import Records

    # A path can be opened too, and is a place for records only in the hands of a sink.
    is_sink = hasattr(value, "open") and not isinstance(value, type | os.PathLike)
    return is_sink or isinstance(value, Records)


def _records(given: Any) -> Records | None:
    from .recorder import Records

    return given if given is None or isinstance(given, Records) else Records(given)


class _Note:
    """Takes down the calls of functions."""

    def __init__(self, name: str | None, records: Records | None) -> None:
        self._name = name
        self._records = records

    def audited(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        if not callable(fn):
            raise TypeError(f"audit takes a function, not {fn!r}: {_FORMS}")
        name = self._name or str(getattr(fn, "__name__", fn))
        if inspect.iscoroutinefunction(fn):

            @wraps(fn)
            async def answer_later(*args: Any, **kwargs: Any) -> Any:
                return await self._later(self.begin(name, args, kwargs), fn(*args, **kwargs))

            return answer_later

        @wraps(fn)
        def answer(*args: Any, **kwargs: Any) -> Any:
            taken = self.begin(name, args, kwargs)
            try:
                reply = fn(*args, **kwargs)
            except BaseException as exc:
                self.raised(taken, exc)
                raise
            if inspect.isawaitable(reply):
                return self._later(taken, reply)
            self.answered(taken, reply)
            return reply

        return answer

    async def _later(self, taken: Answered, reply: Awaitable[Any]) -> Any:
        try:
            answer = await reply
        except BaseException as exc:
            self.raised(taken, exc)
            raise
        self.answered(taken, answer)
        return answer

    def begin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answered:
        arguments = b""
        if self._records is not None:
            arguments = _bytes({"args": args, **kwargs} if args else kwargs)
        return Answered("tool", name, "function", arguments, time(), perf_counter_ns(), 0, None)

    def answered(self, item: Answered, reply: Any) -> None:
        from ..dialects.detect import code_of
        from ..reply import Reply

        item.reply = reply
        if isinstance(reply, Reply):
            item.size = size_of(reply)
            item.code = "" if reply.error is None else reply.error.code
        else:
            item.size = len(_bytes(reply))
            item.code = code_of(reply)
        self._keep(item)

    def raised(self, item: Answered, exc: BaseException) -> None:
        item.code = type(exc).__name__
        self._keep(item)

    def _keep(self, item: Answered) -> None:
        item.took_ns = perf_counter_ns() - item.took_ns
        if self._records is not None:
            self._records.add(item)
        elif item.reply is not None:
            _log_findings(item)


def _log_findings(item: Answered) -> None:
    import logging

    from .logging_sink import LOGGER, log_event
    from .masking import findings_in

    event = event_of(item, findings_in(item.reply), {})
    if event.event == ISSUE:
        log_event(logging.getLogger(LOGGER), event, b"")


def _bytes(value: Any) -> bytes:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode()
