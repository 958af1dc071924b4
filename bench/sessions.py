"""What sessions cost: the memory of an abandoned one, and CPU time with them and without."""

from __future__ import annotations

import http.client
import json
from typing import Any

from .compare import HERE, app_server
from .mcp_http import ACCEPT
from .mcp_stdio import INITIALIZE, cpu_seconds
from .report import Figure
from .rest import ROUNDS, running

SESSIONS = 10_000
ITERATIONS = 1_000
VERSION = "2025-11-25"
CALL = {"name": "add_inline", "arguments": {"x": 7, "y": 3}}


def measure() -> list[Figure]:
    return [_memory(), _cpu()]


def _memory() -> Figure:
    with running("bench.site:site") as server:
        _open(server.port, SESSIONS)  # The memory of a warm-up is not counted.
        before = _resident(server.pid)
        _open(server.port, SESSIONS)
        grown = max(0, _resident(server.pid) - before)
    kept = grown / SESSIONS
    return Figure("KB kept for an abandoned session", kept, 0.5, True, f"{grown} KB in all")


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
    connection = http.client.HTTPConnection("127.0.0.1", port)
    message = {"id": 1, "method": "initialize", "params": INITIALIZE}
    ids = {_post(connection, message, {}).headers["Mcp-Session-Id"] for _ in range(count)}
    if len(ids) != count or None in ids:
        raise RuntimeError("two sessions had the same id, or one had none")
    connection.close()


def _post(
    connection: http.client.HTTPConnection, message: dict[str, Any], headers: dict[str, str]
) -> http.client.HTTPResponse:
    headers = {"Content-Type": "application/json", "Accept": ACCEPT, **headers}
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
    response = connection.getresponse()
    response.read()
    return response


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1])
