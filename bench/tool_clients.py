"""The CPU time of one request with clients that tools use: httpx, aiohttp and redis-py.

It is what a tool adds to its call. The servers are stand-ins in other processes, and are not
measured. Each client runs in a process of its own, on uvloop as under `serve`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from .connections import cost_of
from .mcp_http import stateful
from .report import Chart, Figure, Found
from .rest import UVICORNS, running, serving

AT_ONCE = [1, 8, 50]
ROUNDS = 5
CLIENTS = {
    "httpx": "httpx",
    "httpx, sniffio not installed": "httpx_without_sniffio",
    "aiohttp": "aiohttp",
    "redis-py": "redis_py",
    "redis-py, with hiredis": "redis_py_with_hiredis",
}
CALL = "Answerback: a call over HTTP"


def measure() -> Found:
    columns = [_least(at_once) for at_once in AT_ONCE]
    rows: dict[str, list[float | None]] = {
        name: [column[name] * 1e6 for column in columns] for name in columns[0]
    }
    many = columns[-1]
    detail = f"{many['httpx'] * 1e6:.0f} against {many['aiohttp'] * 1e6:.0f} µs, 50 at a time"
    return [
        Chart(
            name="tool-clients",
            title="A request of a tool's own client, beside the call of the tool",
            unit="µs of CPU time",
            columns=[f"{at_once} at a time" for at_once in AT_ONCE],
            rows=rows,
        ),
        Figure(
            "a request with httpx, times aiohttp", many["httpx"] / many["aiohttp"], 2, False, detail
        ),
    ]


def _least(at_once: int) -> dict[str, float]:
    """The CPU time of a request of each client in seconds, and of a call of ours."""
    with ExitStack() as stack:
        ports = {
            "http": stack.enter_context(serving("bench.bare_asgi:app", UVICORNS)),
            "redis": stack.enter_context(_redis()),
        }
        site = stack.enter_context(running("bench.site:site"))
        call = stateful(site.port, "add_async")[1:]
        clients = {
            label: stack.enter_context(
                _client(name, ports["redis" if "redis" in name else "http"], at_once)
            )
            for label, name in CLIENTS.items()
        }
        least = dict.fromkeys((CALL, *CLIENTS), float("inf"))
        for _ in range(ROUNDS):
            least[CALL] = min(least[CALL], cost_of(site, call, at_once, 3_000))
            for label, (asked, answers) in clients.items():
                asked.write("go\n")
                asked.flush()
                least[label] = min(least[label], float(answers.readline()))
    return least


@contextmanager
def _redis() -> Iterator[int]:
    with _python("bench.redis_stand_in") as (_, output):
        yield int(output.readline())


@contextmanager
def _client(name: str, port: int, at_once: int) -> Iterator[tuple[IO[str], IO[str]]]:
    """Start a client; each line that it gets makes it send requests and print their CPU time."""
    with _python("bench.tool_client_process", name, str(port), str(at_once)) as (asked, answers):
        if answers.readline() != "ready\n":
            raise RuntimeError(f"the client {name} could not connect")
        yield asked, answers


@contextmanager
def _python(module: str, *arguments: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """A module that ends when its input does."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdin, process.stdout
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdout.close()
