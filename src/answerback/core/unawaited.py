"""Unawaited: a coroutine that refuses to be used as its own result."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Generator
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")


class Unawaited(Generic[T]):
    """The coroutine of a function that must be awaited; *advice* says what to write.

    Without it, `if ctx.elicit("Delete all?", bool):` would be true whatever the user answers. It
    has the methods of a coroutine, so asyncio takes it for one. It does not inherit from
    `Coroutine`, with which `isinstance` would be slow.
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
        # Otherwise Python warns about the coroutine too.
        self.close()
        raise TypeError(self._advice)

    def __bool__(self) -> bool:
        # From Python 3.12 on, asyncio tests the coroutine of a task that it shows.
        if sys._getframe(1).f_globals.get("__name__") == "asyncio.base_tasks":
            return True
        self._refuse()

    __str__ = __format__ = __eq__ = __iter__ = __getitem__ = __len__ = _refuse
    __hash__ = object.__hash__
