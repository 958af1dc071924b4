"""A clock that tests set; waiting moves it on and takes no time."""

from __future__ import annotations

from typing import Any

from answerback.resilience import Clock


class ManualClock(Clock):
    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.wait(seconds)

    def wait(self, seconds: float, event: Any = None) -> None:
        self.waits.append(seconds)
        self.time += seconds
