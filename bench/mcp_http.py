"""MCP calls per second over HTTP, compared with the official SDK and with a bare msgspec app."""

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


def stateful(port: int, name: str, path: str = "/mcp") -> tuple[int, str, str, dict[str, str]]:
    """A call in a session of 2025-11-25."""
    headers = {
        "Accept": ACCEPT,
        "MCP-Protocol-Version": "2025-11-25",
        "Mcp-Session-Id": _open_session(port, path),
    }
    params = {"name": name, "arguments": {"x": 7, "y": 3}}
    return port, path, _call(params), headers


def stateless(port: int, name: str) -> tuple[int, str, str, dict[str, str]]:
    """A call of 2026-07-28, which has no session."""
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
        serving("bench.bare_mcp:app", UVICORNS) as bare,
    ):
        inline, stateless_inline = stateful(ours, "add_inline"), stateless(ours, "add_inline")
        jobs = {
            "ours, stateful": stateful(ours, "add"),
            "ours, stateful inline": inline,
            "ours, stateless": stateless(ours, "add"),
            "ours, stateless inline": stateless_inline,
            "mcp, stateful": stateful(official, "add"),
            "mcp, stateless": stateless(official, "add"),
            # The same bytes as ours, so that reading them costs the same.
            "bare, stateful": (bare, *inline[1:]),
            "bare, stateless": (bare, *stateless_inline[1:]),
        }
        rates: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(ROUNDS):
            for name, job in jobs.items():
                rates[name].append(rate(*job))
    medians = {name: statistics.median(found) for name, found in rates.items()}

    def figure(what: str, mine: str, theirs: str, limit: float) -> Figure:
        detail = f"{medians[mine]:.0f} against {medians[theirs]:.0f} calls/s"
        return Figure(what, ratio(rates, mine, theirs), limit, False, detail)

    old, new = "HTTP 2025-11-25", "HTTP 2026-07-28"
    return [
        figure(f"{old}, def, times mcp", "ours, stateful", "mcp, stateful", 10),
        figure(f"{old}, inline, times mcp", "ours, stateful inline", "mcp, stateful", 10),
        figure(f"{new}, def, times mcp", "ours, stateless", "mcp, stateless", 5),
        figure(f"{new}, inline, times mcp", "ours, stateless inline", "mcp, stateless", 5),
        figure(f"{old}, inline, of a bare app", "ours, stateful inline", "bare, stateful", 0.6),
        figure(f"{new}, inline, of a bare app", "ours, stateless inline", "bare, stateless", 0.6),
    ]


def _call(params: Mapping[str, object]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": int(ID), "method": "tools/call", "params": params})


def _open_session(port: int, path: str) -> str:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    id = _post(port, path, request, {})
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
