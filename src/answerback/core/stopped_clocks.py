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
    _stop(clocks)
    try:
        yield
    finally:
        _go_on(clocks)


def _stop(clocks: Collection[StoppableClock]) -> None:
    for clock in clocks:
        clock.stop()


def _go_on(clocks: Collection[StoppableClock]) -> None:
    for clock in clocks:
        clock.go_on()


class WaitingClocks:
    """The clocks of all calls that wait for the same thing; they stop while the user is asked."""

    def __init__(self) -> None:
        self._waiting: list[tuple[StoppableClock, ...]] = []
        self._is_asking = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait with the clocks of the call that runs: they go on unless the user is asked."""
        own = RUNNING.get()
        if self._is_asking:
            _stop(own)
        self._waiting.append(own)
        try:
            yield
        finally:
            self._waiting.remove(own)
            if self._is_asking:
                _go_on(own)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Stop the clocks of all that wait, and of those that begin to wait meanwhile."""
        self._is_asking = True
        for clocks in self._waiting:
            _stop(clocks)
        try:
            yield
        finally:
            self._is_asking = False
            for clocks in self._waiting:
                _go_on(clocks)


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
