"""Tools whose calls the settings of the interpreter make quicker or slower."""

from __future__ import annotations

import time

from answerback import App
from bench.sizes_app import Record
from bench.sizes_app import records as make_records

app = App("settings")


@app.tool(inline=True)
def quick() -> int:
    """Return at once."""
    return 1


@app.tool
def add(x: int, y: int) -> int:
    """Add two numbers in a thread."""
    return x + y


@app.tool
def compute(seconds: float) -> int:
    """Keep a thread busy."""
    until, steps = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        steps += sum(range(1_000))
    return steps


@app.tool
def records(size: int) -> list[Record]:
    """Return records of about *size* bytes."""
    return make_records(size)
