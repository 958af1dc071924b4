"""How long a property is tested: a little, always alike; or as long as the environment says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

LONG = float(os.environ.get("ANSWERBACK_FUZZ", "0"))
"""Seconds for each property, with ever new examples; 0 for the short run."""


def examples(count: int) -> Callable[[Any], Any]:
    """So many examples, always the same; the long run has ever new ones."""
    return settings(
        derandomize=not LONG,
        database=None,
        deadline=None,
        max_examples=1000 if LONG else count,
        print_blob=LONG > 0,
        suppress_health_check=list(HealthCheck),
    )


def for_a_while(holds: Callable[[], None]) -> None:
    """Once; in the long run again and again until the time is up."""
    until = time.monotonic() + LONG
    holds()
    while time.monotonic() < until:
        holds()
