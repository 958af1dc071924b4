"""`audit`: any function, with each of its replies checked and recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import msgspec

from .answered import Answered, event_of, size_of
from .event import ISSUE

if TYPE_CHECKING:
    from .records import Records

P = ParamSpec("P")
T = TypeVar("T")
_encode = msgspec.json.Encoder(enc_hook=repr).encode


@overload
def audit(fn: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def audit(
    *, name: str | None = None, records: Records | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
def audit(fn: Any = None, /, *, name: str | None = None, records: Records | None = None) -> Any:
    """Check what *fn* gives back and record it; it is given back unchanged.

    Without *records* only findings are recorded, in the log `answerback.records`.
    """
    if fn is None:
        return partial(audit, name=name, records=records)
    note = _Note(name or str(getattr(fn, "__name__", fn)), records)
    if inspect.iscoroutinefunction(fn):

        @wraps(fn)
        async def answer_later(*args: Any, **kwargs: Any) -> Any:
            taken = note.begin(args, kwargs)
            try:
                reply = await fn(*args, **kwargs)
            except BaseException as exc:
                note.raised(taken, exc)
                raise
            note.answered(taken, reply)
            return reply

        return answer_later

    @wraps(fn)
    def answer(*args: Any, **kwargs: Any) -> Any:
        taken = note.begin(args, kwargs)
        try:
            reply = fn(*args, **kwargs)
        except BaseException as exc:
            note.raised(taken, exc)
            raise
        note.answered(taken, reply)
        return reply

    return answer


class _Note:
    """Takes down the calls of one function."""

    def __init__(self, name: str, records: Records | None) -> None:
        self._name = name
        self._records = records

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answered:
        arguments = b""
        if self._records is not None:
            arguments = _bytes({"args": args, **kwargs} if args else kwargs)
        return Answered(
            "tool", self._name, "function", arguments, time(), perf_counter_ns(), 0, None
        )

    def answered(self, item: Answered, reply: Any) -> None:
        from ..reply import Reply

        item.reply = reply
        if isinstance(reply, Reply):
            item.size = size_of(reply)
            item.code = "" if reply.error is None else reply.error.code
        else:
            item.size = len(_bytes(reply))
            item.code = _code(reply)
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

    from .checking import findings_in
    from .logs import LOGGER, log_event

    event = event_of(item, findings_in(item.reply, ""), {})
    if event.event == ISSUE:
        log_event(logging.getLogger(LOGGER), event, b"")


def _bytes(value: Any) -> bytes:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode()


def _code(reply: Any) -> str:
    match reply:
        case {"success": False, "error": {"code": str(code)}}:
            return code
        case {"success": False} | {"isError": True}:
            return "UNKNOWN_ERROR"
    return ""
