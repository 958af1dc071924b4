"""How long each property is tested: a fixed number of examples, or ANSWERBACK_FUZZ seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

LONG = float(os.environ.get("ANSWERBACK_FUZZ", "0"))
"""Seconds for each property, with new examples each time; 0 for the short run."""


def examples(count: int) -> Callable[[Any], Any]:
    """Settings for *count* examples, the same in each run; a long run has new ones each time."""
    return settings(
        derandomize=not LONG,
        database=None,
        deadline=None,
        max_examples=1000 if LONG else count,
        print_blob=LONG > 0,
        suppress_health_check=list(HealthCheck),
    )


def holds(check: Callable[[], None]) -> bool:
    """Run a property once, or in a long run until its time is up; fails if it does not hold."""
    until = time.monotonic() + LONG
    check()
    while time.monotonic() < until:
        check()
    return True
