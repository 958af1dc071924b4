"""REST calls per second, as a ratio to those of a bare ASGI app under the same uvicorn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

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
        speeds = Speeds(
            {
                "bare": (bare, "/"),
                "inline": (ours, "/functions/add_inline"),
                "mounted": (mounted, "/functions/add_inline"),
                "async": (ours, "/functions/add_async"),
                "thread": (ours, "/functions/add"),
            }
        )
    return [
        speeds.figure("REST, inline tool", "inline", "bare", 0.7),
        speeds.figure("REST, inline tool, app.asgi() under uvicorn", "mounted", "bare", 0.6),
        speeds.figure("REST, async tool", "async", "bare", 0.6),
        speeds.figure("REST, def tool in a thread", "thread", "bare", 0.6),
    ]


class Speeds:
    """Calls per second and the CPU time of a call, for jobs of one run.

    A job is a server, with the arguments of `rate` after the port. All are measured in turn, so
    that other load on the machine affects all of them alike.
    """

    def __init__(self, jobs: Mapping[str, tuple[Any, ...]]) -> None:
        self._rates: dict[str, list[float]] = {name: [] for name in jobs}
        self._costs: dict[str, list[float]] = {name: [] for name in jobs}
        for server, *arguments in jobs.values():
            rate(server.port, *arguments)
        for _ in range(ROUNDS):
            for name, (server, *arguments) in jobs.items():
                before = server.cpu()
                found = rate(server.port, *arguments)
                self._rates[name].append(found)
                self._costs[name].append((server.cpu() - before) / (found * SECONDS))

    def figure(self, what: str, ours: str, theirs: str, limit: float) -> Figure:
        """The median of the rounds' ratios; on a busy machine the CPU time varies less."""
        ratio = median(a / b for a, b in zip(self._rates[ours], self._rates[theirs], strict=True))
        rates = [median(self._rates[name]) for name in (ours, theirs)]
        costs = [median(self._costs[name]) * 1e6 for name in (ours, theirs)]
        detail = (
            f"{rates[0]:.0f} against {rates[1]:.0f} calls/s, "
            f"{costs[0]:.0f} against {costs[1]:.0f} µs of CPU a call"
        )
        return Figure(what, ratio, limit, False, detail)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
