"""MCP calls a second over HTTP, against the official SDK, and against a bare msgspec app."""

from __future__ import annotations

import json
import statistics
import urllib.request
from collections.abc import Mapping

from .load import ID
from .report import Figure
from .rest import ROUNDS, UVICORNS, rate, ratio, serving

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
ACCEPT = "application/json, text/event-stream"


def legacy(port: int, name: str, path: str = "/mcp") -> tuple[int, str, str, dict[str, str]]:
    """A call within a session of 2025-11-25."""
    headers = {
        "Accept": ACCEPT,
        "MCP-Protocol-Version": "2025-11-25",
        "Mcp-Session-Id": _open_session(port, path),
    }
    params = {"name": name, "arguments": {"x": 7, "y": 3}}
    return port, path, _call(params), headers


def modern(port: int, name: str) -> tuple[int, str, str, dict[str, str]]:
    """A call of 2026-07-28, which stands for itself."""
    headers = {
        "Accept": ACCEPT,
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    meta = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
    params = {"name": name, "arguments": {"x": 7, "y": 3}, "_meta": meta}
    return port, "/mcp", _call(params), headers


def measure() -> list[Figure]:
    with (
        serving("bench.site:site") as ours,
        serving("bench.peers.official_http:app", UVICORNS) as official,
        serving("bench.floor:app", UVICORNS) as floor,
    ):
        inline, modern_inline = legacy(ours, "add_inline"), modern(ours, "add_inline")
        jobs = {
            "ours, legacy": legacy(ours, "add"),
            "ours, legacy inline": inline,
            "ours, modern": modern(ours, "add"),
            "ours, modern inline": modern_inline,
            "mcp, legacy": legacy(official, "add"),
            "mcp, modern": modern(official, "add"),
            # The same bytes, so that reading them costs the same.
            "floor": (floor, *inline[1:]),
            "modern floor": (floor, *modern_inline[1:]),
        }
        rates = {name: [] for name in jobs}  # type: dict[str, list[float]]
        for _ in range(ROUNDS):
            for name, job in jobs.items():
                rates[name].append(rate(*job))
    middle = {name: statistics.median(found) for name, found in rates.items()}

    def figure(what: str, mine: str, theirs: str, limit: float) -> Figure:
        detail = f"{middle[mine]:.0f} against {middle[theirs]:.0f} calls/s"
        return Figure(what, ratio(rates, mine, theirs), limit, False, detail)

    return [
        figure("HTTP 2025-11-25, def, times mcp", "ours, legacy", "mcp, legacy", 10),
        figure("HTTP 2025-11-25, inline, times mcp", "ours, legacy inline", "mcp, legacy", 10),
        figure("HTTP 2026-07-28, def, times mcp", "ours, modern", "mcp, modern", 5),
        figure("HTTP 2026-07-28, inline, times mcp", "ours, modern inline", "mcp, modern", 5),
        figure("HTTP 2025-11-25, inline, of the floor", "ours, legacy inline", "floor", 0.6),
        figure("HTTP 2026-07-28, inline, of the floor", "ours, modern inline", "modern floor", 0.6),
    ]


def _call(params: Mapping[str, object]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": int(ID), "method": "tools/call", "params": params})


def _open_session(port: int, path: str) -> str:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    id = _post(port, path, opening, {})
    _post(
        port,
        path,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"},
    )
    return id


def _post(port: int, path: str, message: Mapping[str, object], more: dict[str, str]) -> str:
    headers = {"Content-Type": "application/json", "Accept": ACCEPT, **more}
    body = json.dumps(message).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()
        return response.headers.get("Mcp-Session-Id") or ""
