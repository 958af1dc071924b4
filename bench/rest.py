"""REST calls per second, as a ratio to those of a bare ASGI app under the same uvicorn."""

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
# The protocol classes for uvicorn: `serve` has our own, the other servers use uvicorn's.
OURS = "answerback.server.uvicorn.uvicorn_protocol:UvicornProtocol"
UVICORNS = "auto"


class Server(NamedTuple):
    port: int
    pid: int

    def cpu(self) -> float:
        """The CPU time of the process and its threads so far, in seconds."""
        stat = Path(f"/proc/{self.pid}/stat")
        if not stat.exists():
            return float("nan")
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(application: str, protocol: str = OURS) -> Iterator[Server]:
    """Serve an ASGI application on a free port, with uvicorn configured as in `serve`."""
    command = [sys.executable, "-m", "bench.uvicorn_on_a_free_port", application, protocol]
    server = subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield Server(int(server.stdout.readline()), server.pid)
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def serving(application: str, protocol: str = OURS) -> Iterator[int]:
    """Serve an ASGI application, and give its port."""
    with running(application, protocol) as server:
        yield server.port


def rate(port: int, path: str, body: str = BODY, headers: dict[str, str] | None = None) -> float:
    """Calls per second. The load comes from another process, so that it can use another core."""
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
        # Measured in turn, so that other load on the machine affects all of them alike.
        rates: dict[str, list[float]] = {name: [] for name in places}
        costs: dict[str, list[float]] = {name: [] for name in places}
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
    """The ratio, with rates and CPU times: on a busy machine the CPU time varies less."""
    middle = statistics.median
    detail = (
        f"{middle(rates[name]):.0f} of {middle(rates['bare']):.0f} calls/s, "
        f"{middle(costs[name]) * 1e6:.0f} to {middle(costs['bare']) * 1e6:.0f} µs of CPU a call"
    )
    return Figure(what, ratio(rates, name, "bare"), limit, False, detail)


def ratio(rates: dict[str, list[float]], ours: str, theirs: str) -> float:
    """The median of the ratios of all rounds."""
    return statistics.median(a / b for a, b in zip(rates[ours], rates[theirs], strict=True))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
