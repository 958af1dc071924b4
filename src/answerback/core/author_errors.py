"""Helps with authors' mistakes: similar names, tracebacks without our frames, missing `await`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Coroutine, Generator, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

# difflib takes a few microseconds per name, and a caller is waiting.
_MAX_COMPARED = 32


def did_you_mean(found: Sequence[str], *, quoted: bool = True) -> str:
    """Return a "did you mean" question for these names; an empty string if there are none."""
    names = map(repr, found) if quoted else found
    return f"did you mean {' or '.join(names)}?" if found else ""


def similar_names(name: str, known: Iterable[str], limit: int = 1) -> list[str]:
    """Return up to *limit* known names that the caller may have meant by *name*.

    If there are many, only the *_MAX_COMPARED* closest in letters and length are compared.
    """
    import difflib

    # Known names are at most 128 characters long, and difflib is slow on long strings.
    name, known = name[:128], list(known)
    folded = name.casefold()
    if same := [each for each in known if each.casefold() == folded]:
        return same[:limit]
    if len(known) > _MAX_COMPARED:
        letters, length = set(name), len(name)
        known.sort(
            key=lambda each: (len(letters.symmetric_difference(each)), abs(len(each) - length))
        )
        del known[_MAX_COMPARED:]
    return difflib.get_close_matches(name, known, n=limit)


_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(__file__))


def author_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without our and importlib's frames around the author's."""
    while trace is not None and _is_internal(trace):
        trace = trace.tb_next
    frame = trace
    while frame is not None and frame.tb_next is not None:
        if _is_internal(frame.tb_next):
            frame.tb_next = None
        frame = frame.tb_next
    return trace


def _is_internal(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((_PACKAGE_FOLDER, "<frozen importlib")) or file == importlib.__file__


class HideLibraryFrames:
    """Hides the library's frames in the traceback when the library rejects an argument.

    Exceptions from the author's code and from other libraries keep all their frames.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, exc: BaseException | None, trace: TracebackType | None) -> None:
        if trace is None or not isinstance(exc, TypeError | ValueError):
            return
        while trace.tb_next is not None:
            trace = trace.tb_next
        if _is_internal(trace):
            # The callers' frames are added later, when the exception reaches them.
            exc.__traceback__ = None


T = TypeVar("T")


class Unawaited(Generic[T]):
    """Wraps the coroutine of a function that must be awaited; *advice* says what to write.

    Without it, `if ctx.elicit("Delete all?", bool):` would be true whatever the user answered. It
    has the methods of a coroutine, so asyncio accepts it as one. It does not inherit
    from `Coroutine`, which would make `isinstance` slow.
    """

    __slots__ = ("_advice", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, T], advice: str) -> None:
        self._coroutine = coroutine
        self._advice = advice

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: object) -> object:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> object:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def _refuse(self, *_: object) -> NoReturn:
        # Otherwise Python would also warn about the coroutine.
        self.close()
        raise TypeError(self._advice)

    def __bool__(self) -> bool:
        # Since Python 3.12, the `repr` of an asyncio task tests whether its coroutine is true.
        if sys._getframe(1).f_globals.get("__name__") == "asyncio.base_tasks":
            return True
        self._refuse()

    __str__ = __format__ = __eq__ = __iter__ = __getitem__ = __len__ = _refuse
    __hash__ = object.__hash__
