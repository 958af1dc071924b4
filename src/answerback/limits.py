"""How much may go on at a time, and for how long."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    threads: int = 40
    """Plain `def` tools that run at a time; more wait for their turn."""
    calls: int = 1000
    """Calls in flight; beyond them the answer is that the server is busy."""
    seconds: float | None = None
    """How long a tool may take, unless it says otherwise; None is as long as it wants."""

    def __post_init__(self) -> None:
        if self.threads < 1 or self.calls < 1:
            raise ValueError("limits must let at least one call through")
        if self.seconds is not None and self.seconds <= 0:
            raise ValueError(f"a tool cannot take {self.seconds!r} seconds; give more, or None")


DEFAULT_LIMITS = Limits()
MAX_BODY = 4 * 1024 * 1024
"""The largest request body over HTTP and CGI, in bytes, unless the server is told otherwise."""
