"""Clock: gives the time and waits. Tests use one that does not really wait."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """The real clock. Its time is that of `time.monotonic`."""

    def now(self) -> float:
        """Return the time in seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop; a cancellation ends the wait."""
        import asyncio

        await asyncio.sleep(seconds)

    def wait(self, seconds: float) -> None:
        """Wait in a thread."""
        time.sleep(seconds)


REAL_CLOCK = Clock()


class Stopwatch:
    """Measures a call's duration; it is paused while the user is asked.

    It belongs to one call, whose questions are asked on one thread.
    """

    __slots__ = ("_began", "_now", "_open", "_stopped_at", "questions")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began = now()
        self._stopped_at = 0.0
        self._open = 0
        self.questions = 0
        """The number of questions sent."""

    def seconds(self) -> float:
        until = self._stopped_at if self._open else self._now()
        return until - self._began

    def stop(self) -> None:
        self.questions += 1
        if self._open == 0:
            self._stopped_at = self._now()
        self._open += 1

    def go_on(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._began += self._now() - self._stopped_at
