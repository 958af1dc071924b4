"""The CPU time of a call over HTTP by the number of connections that send at the same time."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from .mcp_http import SERVERS, stateful
from .mcp_stdio import cpu_seconds
from .report import Chart, Figure, Found
from .rest import Server, rate, running

CONNECTIONS = [1, 10, 100, 1_000]
ROUNDS = 3
# The server, the tool, and how many calls are made in a round, at least so many per connection:
# where a call is cheap, the start of its connection would be seen.
JOBS = {
    "Answerback": ("ours", "add_async", 5_000, 10),
    "mcp": ("mcp json", "add", 1_000, 1),
    "FastMCP": ("fastmcp", "add", 1_000, 1),
    "bare ASGI": ("bare", "add_async", 5_000, 10),
}


def measure() -> Found:
    with ExitStack() as stack:
        servers = {
            label: stack.enter_context(running(*SERVERS[name]))
            for label, (name, *_) in JOBS.items()
        }
        calls = {
            label: stateful(servers["Answerback" if name == "bare" else label].port, tool)[1:]
            for label, (name, tool, *_) in JOBS.items()
        }
        rows: dict[str, list[float | None]] = {label: [] for label in JOBS}
        for connections in CONNECTIONS:
            least = dict.fromkeys(JOBS, float("inf"))
            for _ in range(ROUNDS):
                for label, (_, _, count, each) in JOBS.items():
                    count = max(count, each * connections)
                    cost = cost_of(servers[label], calls[label], connections, count)
                    least[label] = min(least[label], cost)
            for label, cost in least.items():
                rows[label].append(cost * 1e6)
    ours = [each for each in rows["Answerback"] if each is not None]
    detail = f"{ours[-1]:.0f} against {ours[1]:.0f} µs of CPU time"
    return [
        Chart(
            name="connections",
            title="A call of MCP over HTTP, by connections",
            unit="µs of the server's CPU time",
            columns=[f"{each:,}" for each in CONNECTIONS],
            rows=rows,
            across="connections that call at the same time",
        ),
        Figure(
            "a call with 1,000 connections, of one with 10", ours[-1] / ours[1], 2, True, detail
        ),
    ]


def cost_of(server: Server, call: tuple[Any, ...], connections: int, count: int) -> float:
    """The server's CPU time of a call in seconds."""
    before = cpu_seconds(server.pid)
    rate(server.port, *call, connections=connections, calls=count)
    return (cpu_seconds(server.pid) - before) / count
