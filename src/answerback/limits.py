"""Limits: how many threads and calls an app runs at a time, and how long a call may take.

A call's arguments have a limit too, if pydantic reads them.
"""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    threads: int = 40
    """How many plain `def` tools run at a time; further calls wait for a free thread."""
    calls: int = 1000
    """How many calls are in flight at a time; further calls are refused with UNAVAILABLE."""
    seconds: float | None = None
    """The time-out of tools without a `timeout` of their own; None means no time-out."""
    wait: float = 30.0
    """The seconds that a call waits for a thread while no running call ends; then it is refused."""
    gates: float = 10.0
    """The seconds that a gate may take; a call whose gate takes longer is refused."""
    shutdown: float = 30.0
    """The seconds that running calls get to finish at a shutdown, and the lifespan to end."""

    values: int = 200_000
    """How many values the arguments of a call may have if pydantic reads any of them."""

    def __post_init__(self) -> None:
        if self.threads < 1 or self.calls < 1:
            raise ValueError("limits must let at least one call through")
        if self.values < 1:
            raise ValueError("arguments must have at least one value")
        if self.seconds is not None and self.seconds <= 0:
            raise ValueError(f"a tool cannot take {self.seconds!r} seconds; give more, or None")
        if self.wait <= 0:
            raise ValueError(f"a call cannot wait {self.wait!r} seconds; give more")
        if self.gates <= 0:
            raise ValueError(f"a gate cannot take {self.gates!r} seconds; give more")
        if self.shutdown <= 0:
            raise ValueError(f"a shutdown cannot take {self.shutdown!r} seconds; give more")


DEFAULT_LIMITS = Limits()
MAX_BODY = 4 * 1024 * 1024
"""The largest request body over HTTP and CGI, in bytes; an option of the server changes it."""
