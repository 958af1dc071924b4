"""A property test that ends by the clock when it is asked to run long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

LONG = float(os.environ.get("ANSWERBACK_FUZZ", "0"))
"""Seconds for each property; 0 for the short run that is always the same."""


def bounded(examples: int) -> Callable[[Any], Any]:
    """So many examples, always the same; in the long run as many as there is time for."""
    quiet = list(HealthCheck)
    if not LONG:
        return settings(
            derandomize=True,
            database=None,
            deadline=None,
            max_examples=examples,
            suppress_health_check=quiet,
        )
    return settings(
        deadline=None, max_examples=10**9, print_blob=True, suppress_health_check=quiet
    )


class Clock:
    """Says when the long run is over; what comes after is passed over at once."""

    def __init__(self) -> None:
        self._until = time.monotonic() + LONG

    @property
    def is_over(self) -> bool:
        return LONG > 0 and time.monotonic() > self._until
