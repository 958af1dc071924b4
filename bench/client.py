"""The CPU time of a call in our client and in the official one, with the same server of ours."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from .report import Figure
from .rest import serving

STARTS = 3
ROUNDS = 6


def measure() -> list[Figure]:
    with serving("bench.site:site") as port:
        return [
            _figure("client over stdio, CPU of a call, times mcp", "", 5),
            _figure(
                "client over HTTP, CPU of a call, times mcp", f"http://127.0.0.1:{port}/mcp", 3
            ),
        ]


def _figure(what: str, url: str, limit: float) -> Figure:
    found: dict[str, list[float]] = {"ours": [], "mcp": []}
    for _ in range(STARTS):
        # Two processes of the same program differ by a tenth, as their memory is laid out.
        for name, seconds in _cheapest_rounds(url).items():
            found[name].append(seconds)
    ours, theirs = (statistics.median(each) * 1e6 for each in found.values())
    return Figure(what, theirs / ours, limit, False, f"{ours:.0f} against {theirs:.0f} us")


def _cheapest_rounds(url: str) -> dict[str, float]:
    """The CPU time of a call in the cheapest round of each client; the rounds alternate.

    Other load on the machine makes a round dearer and never cheaper.
    """
    seconds: dict[str, list[float]] = {"ours": [], "mcp": []}
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
