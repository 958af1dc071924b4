"""The CPU time of a REST call, compared with FastAPI and a bare ASGI app under the same uvicorn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any, NamedTuple

from .mcp_stdio import cpu_seconds
from .report import Chart, Figure, Found

CONNECTIONS = 32
SECONDS = 0.6
ROUNDS = 5
FEWEST = 300
BODY = '{"x":7,"y":3}'
# The protocol classes for uvicorn: `serve` has our own, the other servers use uvicorn's.
OURS = "answerback.server.uvicorn.uvicorn_protocol:UvicornProtocol"
UVICORNS = "auto"


class Server(NamedTuple):
    port: int
    pid: int

    def cpu(self) -> float:
        """The CPU time of the process and its threads so far, in seconds."""
        return cpu_seconds(self.pid)


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
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            # A peer may take longer than that to end thousands of sessions.
            server.kill()
            server.wait()


@contextmanager
def serving(application: str, protocol: str = OURS) -> Iterator[int]:
    """Serve an ASGI application, and give its port."""
    with running(application, protocol) as server:
        yield server.port


def rate(
    port: int,
    path: str,
    body: str = BODY,
    headers: dict[str, str] | None = None,
    *,
    connections: int = CONNECTIONS,
    calls: int | None = None,
) -> float:
    """Calls per second. The load comes from another process, so that it can use another core.

    With *calls*, exactly so many are made, however long that takes.
    """
    job = {
        "port": port,
        "path": path,
        "body": body,
        "headers": headers or {},
        "connections": connections,
        "seconds": SECONDS if calls is None else None,
        "calls": calls,
    }
    command = [sys.executable, "-m", "bench.load"]
    done = subprocess.run(
        command, input=json.dumps(job), check=True, stdout=subprocess.PIPE, text=True
    )
    return float(done.stdout)


def measure() -> Found:
    with (
        running("bench.bare_asgi:app", UVICORNS) as bare,
        running("bench.site:site") as ours,
        running("bench.site:site", UVICORNS) as mounted,
        running("bench.peers.fast_api:app", UVICORNS) as fast,
    ):
        speeds = Speeds(
            {
                "Answerback, inline tool": (ours, "/functions/add_inline"),
                "Answerback, async tool": (ours, "/functions/add_async"),
                "Answerback, def tool": (ours, "/functions/add"),
                "Answerback, inline, app.asgi()": (mounted, "/functions/add_inline"),
                "FastAPI, async def": (fast, "/add_async"),
                "FastAPI, def": (fast, "/add"),
                "bare ASGI": (bare, "/"),
            }
        )
    figure = speeds.figure
    return [
        Chart(
            name="rest",
            title="A call over REST",
            unit="µs of the server's CPU time",
            columns=[""],
            rows={name: [speeds.cost(name)] for name in speeds.names},
        ),
        figure("REST, async tool, times FastAPI", speeds.names[1], "FastAPI, async def", 2.5),
        figure("REST, def tool, times FastAPI", speeds.names[2], "FastAPI, def", 2.5),
        figure("REST, inline tool, times bare ASGI", speeds.names[0], "bare ASGI", 0.5),
        figure("REST, async tool, times bare ASGI", speeds.names[1], "bare ASGI", 0.45),
        figure("REST, def tool, times bare ASGI", speeds.names[2], "bare ASGI", 0.35),
        figure(
            "REST, inline tool, app.asgi() under uvicorn, times bare ASGI",
            speeds.names[3],
            "bare ASGI",
            0.45,
        ),
    ]


class Speeds:
    """Calls per second and the CPU time of a call, for jobs of one run.

    A job is a server, with the arguments of `rate` after the port. All are measured in turn, so
    that other load on the machine affects all of them alike. Of the CPU time the least of all
    rounds counts, because other load only adds to it; of the calls per second the median.
    """

    def __init__(self, jobs: Mapping[str, tuple[Any, ...]], rounds: int = ROUNDS) -> None:
        self.names = list(jobs)
        self._rates: dict[str, list[float]] = {name: [] for name in jobs}
        self._costs: dict[str, list[float]] = {name: [] for name in jobs}
        # The first calls build decoders, and show how many calls a round can have.
        counts = {
            name: max(FEWEST, int(rate(server.port, *arguments, calls=FEWEST) * SECONDS))
            for name, (server, *arguments) in jobs.items()
        }
        for _ in range(rounds):
            for name, (server, *arguments) in jobs.items():
                before = server.cpu()
                self._rates[name].append(rate(server.port, *arguments, calls=counts[name]))
                self._costs[name].append((server.cpu() - before) / counts[name])

    def cost(self, name: str) -> float:
        """The server's CPU time of a call in microseconds."""
        return min(self._costs[name]) * 1e6

    def figure(self, what: str, ours: str, theirs: str, limit: float) -> Figure:
        """How many times our CPU time theirs is."""
        rates = [median(self._rates[name]) for name in (ours, theirs)]
        detail = (
            f"{self.cost(ours):.0f} against {self.cost(theirs):.0f} µs of CPU time; "
            f"{rates[0]:,.0f} against {rates[1]:,.0f} calls/s"
        )
        return Figure(what, self.cost(theirs) / self.cost(ours), limit, False, detail)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
