"""A clock that tests set, for stores of tasks."""

from __future__ import annotations

NOW = 1_000_000.0


class StoreClock:
    """The time of a store; it stands still until a test sets it."""

    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> float:
        return self.time
