"""The resident memory of servers over stdio and HTTP: idle, and with 50 connections that call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .mcp_http import SERVERS, stateful
from .mcp_stdio import Client, resident
from .report import Chart, Figure, Found
from .rest import UVICORNS, rate, running

CONNECTIONS, CALLS = 50, 2_000
FIRST_CALLS = 20
PEERS = {"Answerback": "ours", "mcp": "mcp", "FastMCP": "fastmcp", "bare": "bare"}
REST = ("bench.peers.fast_api:app", UVICORNS)


def measure() -> Found:
    rows: dict[str, list[float | None]] = {
        label: [_over_stdio(name), *_over_http(SERVERS[name], lambda port: stateful(port, "add"))]
        for label, name in PEERS.items()
    }
    rows["FastAPI (REST)"] = [None, *_over_http(REST, lambda port: (port, "/add"))]
    ours, theirs = rows["Answerback"], rows["mcp"]
    return [
        Chart(
            name="memory",
            title="Memory of a server with one tool",
            unit="MB resident",
            columns=["stdio", "HTTP", f"HTTP, after {CONNECTIONS} connections called"],
            rows=rows,
        ),
        _figure("memory over stdio, of mcp", ours[0], theirs[0]),
        _figure(f"memory over HTTP, {CONNECTIONS} connections, of mcp", ours[2], theirs[2]),
    ]


def _over_stdio(name: str) -> float:
    client = Client(name)
    for _ in range(FIRST_CALLS):
        client.call("add")
    found = client.resident()
    client.close()
    return found / 1024


def _over_http(application: tuple[str, str], job: Callable[[int], tuple[Any, ...]]) -> list[float]:
    """After a few calls, and after many over all connections."""
    with running(*application) as server:
        _, *call = job(server.port)
        rate(server.port, *call, connections=1, calls=FIRST_CALLS)
        idle = resident(server.pid)
        rate(server.port, *call, connections=CONNECTIONS, calls=CALLS)
        return [idle / 1024, resident(server.pid) / 1024]


def _figure(what: str, ours: float | None, theirs: float | None) -> Figure:
    assert ours is not None
    assert theirs is not None
    return Figure(what, ours / theirs, 0.6, True, f"{ours:.0f} against {theirs:.0f} MB")
