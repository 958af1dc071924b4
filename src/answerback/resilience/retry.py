"""Retry: how often to repeat a failed attempt, and how long to wait before each."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from random import random
from typing import ClassVar

from ..core.json_value import is_number
from .policy import (
    REAL_CLOCK,
    Clock,
    Part,
    Policy,
    check_classes,
    check_clock,
    check_count,
    check_first,
    check_plain,
    check_seconds,
)
from .service_failure import ServiceFailure


def backoff_with_jitter(attempt: int) -> float:
    """Return the seconds to wait after attempt number *attempt*, counted from 0."""
    # Far above any wait; much larger powers overflow a float.
    return 2.0 ** min(attempt, 64) + random()


def _always(seconds: object) -> Callable[[int], float]:
    if not is_number(seconds) or not 0 <= seconds < inf:
        raise TypeError(
            f"wait={seconds!r} should be a number of seconds, such as 0.5, "
            "or a function of the attempt's number, from 0"
        )
    return lambda attempt: seconds


class Retry(Part):
    """Repeats a failed call, with growing waits; the last attempt's error is raised.

    *attempts* counts the first call too. *wait* is the seconds to wait, or a function of the
    attempt's number, from 0. Connection errors, time-outs, `retryable` errors and the classes in
    *on* are retried. A service that asks for a longer wait gets it, up to *max_wait* seconds; if it
    asks for more, its error is raised at once. *deadline* covers all attempts and waits together,
    in seconds. *clock* is for tests.
    """

    option: ClassVar[str] = "retry"

    def __init__(
        self,
        attempts: int = 3,
        *,
        wait: float | Callable[[int], float] = backoff_with_jitter,
        max_wait: float = 60.0,
        deadline: float | None = None,
        on: type[Exception] | tuple[type[Exception], ...] = (),
        clock: Clock = REAL_CLOCK,
    ) -> None:
        check_first(attempts, "@Retry(), with parentheses")
        check_count("attempts", attempts)
        self.wait = wait if callable(wait) else _always(wait)
        check_plain("wait", wait)
        check_seconds("max_wait", max_wait)
        if deadline is not None:
            check_seconds("deadline", deadline)
        check_classes("on", on)
        check_clock(clock)
        self.attempts = attempts
        self.max_wait = max_wait
        self.deadline = deadline
        self.on = on
        self.clock = clock

    def __repr__(self) -> str:
        return f"Retry(attempts={self.attempts})"

    def policy(self) -> Policy:
        return Policy(retry=self, may_repeat=True)

    def wait_after(
        self, attempt: int, exc: BaseException | None, failure: ServiceFailure, may_repeat: bool
    ) -> float | None:
        """Return the seconds to wait after failed *attempt*, from 0; None if it was the last."""
        if attempt + 1 >= self.attempts or (failure.may_have_run and not may_repeat):
            return None
        is_wanted = exc is not None and isinstance(exc, self.on)
        if is_wanted and getattr(exc, "retryable", None) is False:
            return None
        if not (failure.transient or is_wanted):
            return None
        asked = failure.retry_after or 0.0
        if asked > self.max_wait:
            return None
        wait = self.wait(attempt)
        if not is_number(wait) or wait != wait:
            raise TypeError(f"wait({attempt}) returned {wait!r}, not a number of seconds")
        return max(asked, min(wait, self.max_wait), 0.0)
