"""Stops time-outs and deadlines while the user or the client's model is asked a question.

The code that measures time puts its clock into a context variable; the code that asks stops all
the clocks there. Calls that have a time-out and calls that ask import this module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class StoppableClock(Protocol):
    """A clock that measures how long a call or an attempt takes."""

    def stop(self) -> None:
        """Stop: a question was sent. Several may be open at a time."""

    def go_on(self) -> None:
        """Go on: a question was answered, or nobody waits for the answer any more."""


RUNNING: ContextVar[tuple[StoppableClock, ...]] = ContextVar("running_clocks", default=())


@contextmanager
def clocks_stopped(clocks: Collection[StoppableClock] | None = None) -> Iterator[None]:
    """Stop the call's clocks meanwhile: `with clocks_stopped(): await peer.ask(…)`."""
    if clocks is None:
        clocks = RUNNING.get()
    for clock in clocks:
        clock.stop()
    try:
        yield
    finally:
        for clock in clocks:
            clock.go_on()


@contextmanager
def stoppable(timeout: asyncio.Timeout) -> Iterator[None]:
    """Let `clocks_stopped` stop a time-out: `async with asyncio.timeout(5) as timeout: …`."""
    if timeout.when() is None:
        yield
        return
    clock = _TimeoutClock(timeout)
    before = RUNNING.set((*RUNNING.get(), clock))
    try:
        yield
    finally:
        RUNNING.reset(before)
        # A task that was started meanwhile, such as the reader of a connection, keeps the clock.
        clock.end()


class _TimeoutClock:
    """A clock that stops an `asyncio.Timeout`, until `end`; a task may keep the clock longer."""

    __slots__ = ("_ended", "_left", "_open", "_timeout")

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._open = 0
        self._left = 0.0
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def stop(self) -> None:
        if self._ended:
            return
        if self._open == 0 and (when := self._timeout.when()) is not None:
            self._left = when - _loop_time()
            self._timeout.reschedule(None)
        self._open += 1

    def go_on(self) -> None:
        if self._ended:
            return
        self._open -= 1
        # An expired time-out cannot be rescheduled.
        if self._open == 0 and not self._timeout.expired():
            self._timeout.reschedule(_loop_time() + self._left)


def _loop_time() -> float:
    import asyncio

    return asyncio.get_running_loop().time()
