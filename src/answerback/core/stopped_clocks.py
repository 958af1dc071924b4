"""Pauses timeouts and deadlines while the user or the client's model is being asked a question.

The code that measures time puts its clock into a context variable; the code that asks pauses all
the clocks there. Only calls that have a timeout or ask a question import this module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class PausableClock(Protocol):
    """A clock that measures how long a call or an attempt takes."""

    def pause(self) -> None:
        """Pause, because a question was sent. Several questions may be open at a time."""

    def resume(self) -> None:
        """Resume, because a question was answered, or its answer is no longer awaited."""


RUNNING: ContextVar[tuple[PausableClock, ...]] = ContextVar("running_clocks", default=())


@contextmanager
def clocks_paused(clocks: Collection[PausableClock] | None = None) -> Iterator[None]:
    """Pause the call's clocks inside the block: `with clocks_paused(): await peer.ask(…)`."""
    if clocks is None:
        clocks = RUNNING.get()
    _pause(clocks)
    try:
        yield
    finally:
        _resume(clocks)


def _pause(clocks: Collection[PausableClock]) -> None:
    for clock in clocks:
        clock.pause()


def _resume(clocks: Collection[PausableClock]) -> None:
    for clock in clocks:
        clock.resume()


class WaitingClocks:
    """The clocks of calls waiting for the same thing; they pause while the user is being asked."""

    def __init__(self) -> None:
        self._waiting: list[tuple[PausableClock, ...]] = []
        self._is_asking = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside the block, pause the running call's clocks whenever the user is being asked."""
        clocks = RUNNING.get()
        if self._is_asking:
            _pause(clocks)
        self._waiting.append(clocks)
        try:
            yield
        finally:
            self._waiting.remove(clocks)
            if self._is_asking:
                _resume(clocks)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Pause the clocks of all waiting calls, including those that start waiting later."""
        self._is_asking = True
        for clocks in self._waiting:
            _pause(clocks)
        try:
            yield
        finally:
            self._is_asking = False
            for clocks in self._waiting:
                _resume(clocks)


@contextmanager
def pausable(timeout: asyncio.Timeout) -> Iterator[None]:
    """Let `clocks_paused` pause a timeout: `async with asyncio.timeout(5) as timeout: …`."""
    if timeout.when() is None:
        yield
        return
    clock = _TimeoutClock(timeout)
    before = RUNNING.set((*RUNNING.get(), clock))
    try:
        yield
    finally:
        RUNNING.reset(before)
        # A task started inside the block, such as a connection's reader, keeps the clock.
        clock.end()


class _TimeoutClock:
    """Pauses an `asyncio.Timeout`, but does nothing after `end`: a task may still hold it."""

    __slots__ = ("_ended", "_left", "_open", "_timeout")

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._open = 0
        self._left = 0.0
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def pause(self) -> None:
        if self._ended:
            return
        if self._open == 0 and (when := self._timeout.when()) is not None:
            self._left = when - _loop_time()
            self._timeout.reschedule(None)
        self._open += 1

    def resume(self) -> None:
        if self._ended:
            return
        self._open -= 1
        # An expired timeout cannot be rescheduled.
        if self._open == 0 and not self._timeout.expired():
            self._timeout.reschedule(_loop_time() + self._left)


def _loop_time() -> float:
    import asyncio

    return asyncio.get_running_loop().time()
