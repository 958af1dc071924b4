"""The CPU time of a call in our client and in those of others, with the same server of ours."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from .report import Chart, Figure, Found
from .rest import serving

STARTS = 3
ROUNDS = 6
CLIENTS = {"ours": "Answerback", "mcp": "mcp", "fastmcp": "FastMCP"}


def measure() -> Found:
    with serving("bench.site:site") as port:
        found = {"stdio": _least(""), "HTTP": _least(f"http://127.0.0.1:{port}/mcp")}
    return [
        Chart(
            name="client",
            title="A call in the client",
            unit="µs of the client's CPU time",
            columns=list(found),
            rows={
                label: [each[name] for each in found.values()] for name, label in CLIENTS.items()
            },
        ),
        _figure("client over stdio, CPU of a call, times mcp", found["stdio"], "mcp", 5),
        _figure("client over HTTP, CPU of a call, times mcp", found["HTTP"], "mcp", 3),
        _figure("client over HTTP, CPU of a call, times FastMCP", found["HTTP"], "fastmcp", 3),
    ]


def _figure(what: str, found: dict[str, float], peer: str, limit: float) -> Figure:
    detail = f"{found['ours']:.0f} against {found[peer]:.0f} µs"
    return Figure(what, found[peer] / found["ours"], limit, False, detail)


def _least(url: str) -> dict[str, float]:
    """The CPU time of a call of each client in µs: the median of the starts."""
    found: dict[str, list[float]] = {name: [] for name in CLIENTS}
    for _ in range(STARTS):
        # Two processes of the same program differ by a tenth, as their memory is laid out.
        for name, seconds in _cheapest_rounds(url).items():
            found[name].append(seconds)
    return {name: statistics.median(each) * 1e6 for name, each in found.items()}


def _cheapest_rounds(url: str) -> dict[str, float]:
    """The CPU time of a call in the cheapest round of each client; the rounds alternate.

    Other load on the machine makes a round dearer and never cheaper.
    """
    seconds: dict[str, list[float]] = {name: [] for name in CLIENTS}
    with ExitStack() as stack:
        clients = {name: stack.enter_context(_client(name, url)) for name in seconds}
        for _ in range(ROUNDS):
            for name, (asked, answers) in clients.items():
                asked.write("go\n")
                asked.flush()
                seconds[name].append(float(answers.readline()))
    return {name: min(each) for name, each in seconds.items()}


@contextmanager
def _client(name: str, url: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """Start a client that is connected; each line that it gets makes it call and answer."""
    command = [sys.executable, "-m", "bench.client_process", name, url]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"the client {name} could not connect to {url or 'a child'}")
        yield process.stdin, process.stdout
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdout.close()
