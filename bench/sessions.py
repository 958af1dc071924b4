"""The memory of an abandoned session: 10,000 sessions are opened and never used again."""

from __future__ import annotations

import http.client
import json

from .mcp_stdio import INITIALIZE
from .report import Figure
from .rest import running

SESSIONS = 10_000


def measure() -> list[Figure]:
    with running("bench.site:site") as server:
        _open(server.port, SESSIONS)  # The memory of a warm-up is not counted.
        before = _resident(server.pid)
        _open(server.port, SESSIONS)
        grown = max(0, _resident(server.pid) - before)
    kept = grown / SESSIONS
    return [Figure("KB kept for an abandoned session", kept, 0.5, True, f"{grown} KB in all")]


def _open(port: int, count: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    ids = set()
    for _ in range(count):
        connection.request("POST", "/mcp", json.dumps(message), headers)
        response = connection.getresponse()
        response.read()
        ids.add(response.headers["Mcp-Session-Id"])
    if len(ids) != count or None in ids:
        raise RuntimeError("two sessions had the same id, or one had none")
    connection.close()


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1])
