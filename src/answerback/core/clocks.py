"""Deadlines and stopwatches that pause while the user or the client's model is asked a question.

The code that measures time puts its clock into a context variable; the code that asks pauses all
the clocks there. Only calls that have a timeout or ask a question import this module.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from .event_loop import running_loop

if TYPE_CHECKING:
    import asyncio


class PausableClock:
    """Counts open questions: the first one stops the clock, and the last answer restarts it."""

    __slots__ = ("_open", "questions")

    def __init__(self) -> None:
        self._open = 0
        self.questions = 0
        """The number of questions sent."""

    def pause(self) -> None:
        """Pause, because a question was sent. Several questions may be open at a time."""
        self.questions += 1
        self._open += 1
        if self._open == 1:
            self._stop()

    def resume(self) -> None:
        """Resume, because a question was answered, or its answer is no longer awaited."""
        self._open -= 1
        if self._open == 0:
            self._restart()

    def _stop(self) -> None:
        """Stop at the first open question."""

    def _restart(self) -> None:
        """Go on after the last answer."""


RUNNING: ContextVar[tuple[PausableClock, ...]] = ContextVar("running_clocks", default=())


@contextmanager
def clocks_paused(clocks: Collection[PausableClock] | None = None) -> Iterator[None]:
    """Pause the call's clocks inside the block: `with clocks_paused(): await peer.ask(…)`."""
    if clocks is None:
        clocks = RUNNING.get()
    for clock in clocks:
        clock.pause()
    try:
        yield
    finally:
        for clock in clocks:
            clock.resume()


class WaitingClocks(PausableClock):
    """The clocks of calls waiting for the same thing; they pause and resume together."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[PausableClock] = []

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside the block, pause the running call's clocks whenever this clock is paused."""
        clocks = RUNNING.get()
        for clock in clocks:
            self._waiting.append(clock)
            if self._open:
                clock.pause()
        try:
            yield
        finally:
            for clock in clocks:
                self._waiting.remove(clock)
                if self._open:
                    clock.resume()

    def _stop(self) -> None:
        for clock in self._waiting:
            clock.pause()

    def _restart(self) -> None:
        for clock in self._waiting:
            clock.resume()


class Stopwatch(PausableClock):
    """Measures a call's duration, excluding the time that the user takes to answer questions.

    It belongs to one call, whose questions are asked on one thread.
    """

    __slots__ = ("_began", "_now", "_stopped_at")

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now
        self._began = now()
        self._stopped_at = 0.0

    def elapsed(self) -> float:
        """Return the duration so far, in seconds."""
        until = self._stopped_at if self._open else self._now()
        return until - self._began

    def _stop(self) -> None:
        self._stopped_at = self._now()

    def _restart(self) -> None:
        self._began += self._now() - self._stopped_at


class Deadline(Stopwatch):
    """The time by which a call or a request must end; paused while waiting for the user."""

    __slots__ = ("_timeouts", "received", "seconds")

    def __init__(self, seconds: float | None) -> None:
        super().__init__(_loop_time)
        self.seconds = seconds
        self.received = 0
        """How many bytes of results a client has received under this deadline."""
        self._timeouts: list[asyncio.Timeout] = []

    @property
    def at(self) -> float | None:
        """In the event loop's time; None if there is no limit, or while waiting for the user."""
        return None if self.seconds is None or self._open else self._began + self.seconds

    def left(self) -> float | None:
        """Return the remaining seconds; None if there is no limit."""
        return None if self.seconds is None else max(0.0, self.seconds - self.elapsed())

    def sooner(self, seconds: float | None) -> Deadline:
        """Return this deadline, or one that ends after *seconds* if that is earlier."""
        left = self.left()
        if seconds is None or (left is not None and left <= seconds):
            return self
        return Deadline(seconds)

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[asyncio.Timeout]:
        """Raise TimeoutError in the block when the time is up; yields the timeout."""
        import asyncio

        async with asyncio.timeout_at(self.at) as timeout:
            before = RUNNING.set((*RUNNING.get(), self))
            self._timeouts.append(timeout)
            try:
                yield timeout
            finally:
                # A task started inside the block, such as a connection's reader, keeps the
                # deadline and may pause it later, but a timeout that has ended cannot be changed.
                self._timeouts.remove(timeout)
                RUNNING.reset(before)

    def _stop(self) -> None:
        super()._stop()
        self._reschedule()

    def _restart(self) -> None:
        super()._restart()
        self._reschedule()

    def _reschedule(self) -> None:
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(self.at)


def _loop_time() -> float:
    loop = running_loop()
    assert loop is not None  # Only code on an event loop has a deadline.
    return loop.time()
