"""MCP calls per second over HTTP, compared with the official SDK and with a bare msgspec app."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping

from .load import ID
from .report import Figure
from .rest import UVICORNS, Speeds, running

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
        running("bench.site:site") as ours,
        running("bench.peers.official_http:app", UVICORNS) as official,
        running("bench.bare_mcp:app", UVICORNS) as bare,
    ):
        _, *inline = stateful(ours.port, "add_inline")
        _, *stateless_inline = stateless(ours.port, "add_inline")
        speeds = Speeds(
            {
                "ours, stateful": (ours, *stateful(ours.port, "add")[1:]),
                "ours, stateful inline": (ours, *inline),
                "ours, stateless": (ours, *stateless(ours.port, "add")[1:]),
                "ours, stateless inline": (ours, *stateless_inline),
                "mcp, stateful": (official, *stateful(official.port, "add")[1:]),
                "mcp, stateless": (official, *stateless(official.port, "add")[1:]),
                # The same bytes as ours, so that reading them costs the same.
                "bare, stateful": (bare, *inline),
                "bare, stateless": (bare, *stateless_inline),
            }
        )
    figure = speeds.figure
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
