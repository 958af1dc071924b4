"""REST calls a second, as a part of what a bare ASGI app under the same uvicorn reaches."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .report import Figure

CONNECTIONS = 32
SECONDS = 1.5
ROUNDS = 5
BODY = '{"x":7,"y":3}'
# What speaks HTTP: ours is what `serve` has, and others are run with what uvicorn has.
OURS = "answerback.wires.server.uvicorn_protocol:Protocol"
UVICORNS = "auto"


class Server(NamedTuple):
    port: int
    pid: int

    def cpu(self) -> float:
        """The seconds of processor time that it has taken so far, with its threads."""
        stat = Path(f"/proc/{self.pid}/stat")
        if not stat.exists():
            return float("nan")
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(application: str, protocol: str = OURS) -> Iterator[Server]:
    """An ASGI application on a free port, under uvicorn as `serve` sets it up."""
    command = [sys.executable, "-m", "bench.uvicorn_on_a_free_port", application, protocol]
    server = subprocess.Popen(command, env=_quick(), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield Server(int(server.stdout.readline()), server.pid)
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def serving(application: str, protocol: str = OURS) -> Iterator[int]:
    """The same, for those who need its port alone."""
    with running(application, protocol) as server:
        yield server.port


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
    with (
        running("bench.bare_asgi:app", UVICORNS) as bare,
        running("bench.site:site") as ours,
        running("bench.site:site", UVICORNS) as mounted,
    ):
        places = {
            "bare": (bare, "/"),
            "inline": (ours, "/functions/add_inline"),
            "mounted": (mounted, "/functions/add_inline"),
            "async": (ours, "/functions/add_async"),
            "thread": (ours, "/functions/add"),
        }
        for server, path in places.values():
            rate(server.port, path)
        # Taken in turn, so that what else the machine does falls on all of them alike.
        rates = {name: [] for name in places}  # type: dict[str, list[float]]
        costs = {name: [] for name in places}  # type: dict[str, list[float]]
        for _ in range(ROUNDS):
            for name, (server, path) in places.items():
                before = server.cpu()
                rates[name].append(rate(server.port, path))
                costs[name].append((server.cpu() - before) / (rates[name][-1] * SECONDS))
    return [
        _figure("REST, inline tool", "inline", 0.7, rates, costs),
        _figure("REST, inline tool, app.asgi() under uvicorn", "mounted", 0.6, rates, costs),
        _figure("REST, async tool", "async", 0.6, rates, costs),
        _figure("REST, def tool in a thread", "thread", 0.6, rates, costs),
    ]


def _figure(
    what: str,
    name: str,
    limit: float,
    rates: dict[str, list[float]],
    costs: dict[str, list[float]],
) -> Figure:
    """The processor time beside the rate: on a busy machine it is the steadier of the two."""
    middle = statistics.median
    detail = (
        f"{middle(rates[name]):.0f} of {middle(rates['bare']):.0f} calls/s, "
        f"{middle(costs[name]) * 1e6:.0f} to {middle(costs['bare']) * 1e6:.0f} µs of CPU a call"
    )
    return Figure(what, ratio(rates, name, "bare"), limit, False, detail)


def ratio(rates: dict[str, list[float]], ours: str, theirs: str) -> float:
    """The median of the rounds' own ratios."""
    return statistics.median(a / b for a, b in zip(rates[ours], rates[theirs], strict=True))


def _quick() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
