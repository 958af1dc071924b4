"""The CPU time of an MCP call over HTTP, compared with the SDK, FastMCP and a bare msgspec app."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from .load import ID
from .report import Chart, Figure, Found
from .rest import OURS, UVICORNS, Speeds, running

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
ACCEPT = "application/json, text/event-stream"
SERVERS = {
    "ours": ("bench.site:site", OURS),
    "mcp": ("bench.peers.official_http:app", UVICORNS),
    "mcp json": ("bench.peers.official_json_http:app", UVICORNS),
    "fastmcp": ("bench.peers.fast_http:app", UVICORNS),
    "bare": ("bench.bare_mcp:app", UVICORNS),
}


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


OLD, NEW = "2025-11-25", "2026-07-28"
JOBS = {
    "Answerback, inline tool": ("ours", "add_inline"),
    "Answerback, async tool": ("ours", "add_async"),
    "Answerback, def tool": ("ours", "add"),
    "mcp": ("mcp", "add"),
    "mcp, JSON responses": ("mcp json", "add"),
    "FastMCP": ("fastmcp", "add"),
    # The same bytes as ours, so that reading them costs the same.
    "bare ASGI": ("bare", "add_inline"),
}


def measure() -> Found:
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(running(*application))
            for name, application in SERVERS.items()
        }
        jobs: dict[str, tuple[Any, ...]] = {}
        for label, (name, tool) in JOBS.items():
            server = servers[name]
            opened = servers["ours"] if name == "bare" else server
            jobs[f"{label} {OLD}"] = (server, *stateful(opened.port, tool)[1:])
            jobs[f"{label} {NEW}"] = (server, *stateless(server.port, tool)[1:])
        speeds = Speeds(jobs)
    return [
        Chart(
            name="http",
            title="A call of MCP over HTTP",
            unit="µs of the server's CPU time",
            columns=[OLD, NEW],
            rows={
                label: [speeds.cost(f"{label} {version}") for version in (OLD, NEW)]
                for label in JOBS
            },
        ),
        *(_figure(speeds, *case) for case in CASES),
    ]


CASES = [
    (OLD, "def", "mcp", 10),
    (OLD, "inline", "mcp", 10),
    (OLD, "inline", "mcp, JSON responses", 5),
    (OLD, "def", "FastMCP", 10),
    (NEW, "def", "mcp", 5),
    (NEW, "inline", "mcp", 5),
    (NEW, "def", "FastMCP", 5),
    (OLD, "inline", "bare ASGI", 0.4),
    (NEW, "inline", "bare ASGI", 0.4),
]


def _figure(speeds: Speeds, version: str, kind: str, peer: str, limit: float) -> Figure:
    return speeds.figure(
        f"HTTP {version}, {kind} tool, times {peer}",
        f"Answerback, {kind} tool {version}",
        f"{peer} {version}",
        limit,
    )


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
