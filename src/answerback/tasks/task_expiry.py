"""When a task's record may be removed; the stores remove it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from ..core.limits import TaskLimits

_GRACE = 300.0
"""The minimum seconds a client has to read a task's result."""
_JUMP = 5.0
"""The seconds that the clock may gain without a jump."""


def first_expiry(now: float, ttl: float | None, limits: TaskLimits) -> float:
    """Return when a new task expires; *ttl* is how many seconds the client wants it kept."""
    kept = limits.retention if ttl is None else min(max(ttl, 1.0), limits.max_retention)
    return now + kept


def expiry_after_end(expires: float | None, now: float) -> float | None:
    """Return when a task expires that ends now."""
    return None if expires is None else max(expires, now + _GRACE)


class ExpiryClock:
    """The time by which a store's records expire; *clock* is the store's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._clocks = clock(), monotonic()
        self._stands_until = 0.0

    def now(self) -> float:
        """Return the time, or 0 for some minutes after the clock was set forward.

        No record became older by that, clients may read them meanwhile, and the clock may be set
        back.
        """
        then, ticks_then = self._clocks
        now, ticks = self._clocks = self._clock(), monotonic()
        if now - then - (ticks - ticks_then) > _JUMP:
            self._stands_until = ticks + _GRACE
        return now if ticks >= self._stands_until else 0.0
