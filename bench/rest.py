"""REST calls a second, as a part of what a bare ASGI app under the same uvicorn reaches."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .report import Figure

CONNECTIONS = 32
SECONDS = 1.5
ROUNDS = 5
BODY = '{"x":7,"y":3}'


@contextmanager
def serving(application: str) -> Iterator[int]:
    """An ASGI application on a free port, under uvicorn as `serve` sets it up."""
    command = [sys.executable, "-m", "bench.uvicorn_on_a_free_port", application]
    server = subprocess.Popen(command, env=_quick(), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait(10)


def rate(port: int, path: str, body: str = BODY, headers: dict[str, str] | None = None) -> float:
    """The load comes from a process of its own, so that it has a core of its own."""
    job = {
        "port": port,
        "path": path,
        "body": body,
        "headers": headers or {},
        "connections": CONNECTIONS,
        "seconds": SECONDS,
    }
    command = [sys.executable, "-m", "bench.load"]
    done = subprocess.run(
        command, input=json.dumps(job), check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def measure() -> list[Figure]:
    with serving("bench.bare_asgi:app") as bare, serving("bench.site:site") as ours:
        places = {
            "bare": (bare, "/"),
            "inline": (ours, "/functions/add_inline"),
            "thread": (ours, "/functions/add"),
            "async": (ours, "/functions/add_async"),
        }
        for port, path in places.values():
            rate(port, path)
        # Taken in turn, so that what else the machine does falls on all of them alike.
        rates = {name: [] for name in places}  # type: dict[str, list[float]]
        for _ in range(ROUNDS):
            for name, (port, path) in places.items():
                rates[name].append(rate(port, path))
    middle = {name: statistics.median(found) for name, found in rates.items()}
    detail = {name: f"{middle[name]:.0f} of {middle['bare']:.0f} calls/s" for name in middle}
    return [
        Figure("REST, inline tool", ratio(rates, "inline", "bare"), 0.7, False, detail["inline"]),
        Figure("REST, async tool", ratio(rates, "async", "bare"), 0.6, False, detail["async"]),
        Figure(
            "REST, def tool in a thread",
            ratio(rates, "thread", "bare"),
            0.6,
            False,
            detail["thread"],
        ),
    ]


def ratio(rates: dict[str, list[float]], ours: str, theirs: str) -> float:
    """The median of the rounds' own ratios."""
    return statistics.median(a / b for a, b in zip(rates[ours], rates[theirs], strict=True))


def _quick() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
