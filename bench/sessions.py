"""What sessions cost: the memory of an abandoned one, and CPU time with them and without."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

from .compare import HERE, app_server
from .mcp_http import ACCEPT, SERVERS
from .mcp_stdio import INITIALIZE, cpu_seconds, resident
from .report import Chart, Figure, Found
from .rest import ROUNDS, rate, running

# The server, and after how many sessions its memory is read. By default, mcp refuses more than
# 10,000 sessions at a time.
OPENED = {
    "Answerback": ("ours", [100, 1_000, 3_000, 100_000]),
    "mcp": ("mcp", [100, 1_000, 3_000]),
    "FastMCP": ("fastmcp", [100, 1_000, 3_000]),
}
ITERATIONS = 500
VERSION = "2025-11-25"
CALL = {"name": "add_inline", "arguments": {"x": 7, "y": 3}}


def measure() -> Found:
    rows: dict[str, list[float | None]] = {
        label: [*_memory(name, counts)] for label, (name, counts) in OPENED.items()
    }
    width = max(map(len, rows.values()))
    for values in rows.values():
        values += [None] * (width - len(values))
    return [
        Chart(
            name="sessions",
            title="Memory over HTTP after sessions that were opened and never ended",
            unit="MB resident",
            columns=[f"{count:,}" for count in OPENED["Answerback"][1]],
            rows=rows,
            across="sessions",
        ),
        _kept(rows["Answerback"]),
        _cpu(),
    ]


def _memory(name: str, counts: list[int]) -> Iterator[float]:
    """The memory in MB after so many sessions in all."""
    with running(*SERVERS[name]) as server:
        opened = 0
        for count in counts:
            _open(server.port, count - opened)
            opened = count
            yield resident(server.pid) / 1024


def _kept(memory: list[float | None]) -> Figure:
    """From the second count on: the first includes what a warm-up takes."""
    _, before, *_, after = (each or 0.0 for each in memory)
    _, first, *_, last = OPENED["Answerback"][1]
    kept = max(0.0, after - before) * 1024 / (last - first)
    detail = f"{after:.0f} MB after {last:,} sessions, {before:.0f} MB after {first:,}"
    return Figure("KB kept for an abandoned session", kept, 0.5, True, detail)


def _cpu() -> Figure:
    """An iteration is what a short-lived client sends: the handshake, one call, and the end."""
    with app_server(HERE, []) as ours, app_server(HERE, ["--stateless"]) as sessionless:
        spent: dict[int, list[float]] = {ours.pid: [], sessionless.pid: []}
        for _ in range(ROUNDS + 1):
            for server in (ours, sessionless):
                before = cpu_seconds(server.pid)
                _iterate(server.port)
                spent[server.pid].append((cpu_seconds(server.pid) - before) / ITERATIONS)
    # The first round is a warm-up. Other load on the machine only adds to a figure.
    with_sessions, without = (min(each[1:]) for each in spent.values())
    detail = f"{without * 1e6:.0f} µs against {with_sessions * 1e6:.0f} µs CPU time"
    return Figure(
        "handshake, call, end: without sessions, of with",
        without / with_sessions,
        0.8,
        True,
        detail,
    )


def _iterate(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(ITERATIONS):
        headers = {"MCP-Protocol-Version": VERSION}
        opened = _post(connection, {"id": 1, "method": "initialize", "params": INITIALIZE}, {})
        if (session := opened.headers["Mcp-Session-Id"]) is not None:
            headers["Mcp-Session-Id"] = session
        _post(connection, {"method": "notifications/initialized"}, headers)
        called = _post(connection, {"id": 2, "method": "tools/call", "params": CALL}, headers)
        if called.status != 200:
            raise RuntimeError(f"the call got the status {called.status}")
        if session is not None:
            connection.request("DELETE", "/mcp", headers=headers)
            connection.getresponse().read()
    connection.close()


def _open(port: int, count: int) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    rate(port, "/mcp", json.dumps(message), {"Accept": ACCEPT}, calls=count)


def _post(
    connection: http.client.HTTPConnection, message: dict[str, Any], headers: dict[str, str]
) -> http.client.HTTPResponse:
    headers = {"Content-Type": "application/json", "Accept": ACCEPT, **headers}
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
    response = connection.getresponse()
    response.read()
    return response
