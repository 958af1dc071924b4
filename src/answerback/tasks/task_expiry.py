"""When a task's record may be removed; the stores remove it."""

from __future__ import annotations

from ..core.limits import TaskLimits

_GRACE = 300.0
"""The minimum seconds a client has to read a task's result."""


def first_expiry(now: float, ttl: float | None, limits: TaskLimits) -> float:
    """Return when a new task expires; *ttl* is how many seconds the client wants it kept."""
    kept = limits.retention if ttl is None else min(max(ttl, 1.0), limits.max_retention)
    return now + kept


def expiry_after_end(expires: float | None, now: float) -> float | None:
    """Return when a task expires that ends now."""
    return None if expires is None else max(expires, now + _GRACE)
