"""MCP over stdio: how soon it answers, how quick a call is, what it keeps; against others."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping

from .report import Figure

STARTS = 7
CALLS = 400
ROUNDS = 3
SERVERS = {
    "ours": ["bench/apps.py", "mcp"],
    "mcp": ["-m", "bench.peers.official"],
    "fastmcp": ["-m", "bench.peers.fast"],
    "floor": ["-m", "bench.floor"],
}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Client:
    """A server in a process of its own, opened for calls."""

    def __init__(self, name: str) -> None:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, *SERVERS[name]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.ask("initialize", INITIALIZE)
        self.started = time.perf_counter() - start
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, object]) -> bytes:
        self._write({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def call(self, tool: str) -> float:
        """Seconds that one call takes."""
        start = time.perf_counter()
        answer = self.ask("tools/call", {"name": tool, "arguments": {"x": 7, "y": 3}})
        taken = time.perf_counter() - start
        if b'"result":10' not in answer.replace(b" ", b"").replace(b"\\", b""):
            raise RuntimeError(f"a wrong answer: {answer!r}")
        return taken

    def resident(self) -> int:
        """Kilobytes in memory."""
        with open(f"/proc/{self.process.pid}/status") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def _write(self, message: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def measure() -> list[Figure]:
    starts = _starts()
    calls, memory = _calls()
    return [
        _times("stdio start, times mcp", starts["ours"], starts["mcp"], 8, "ms"),
        _times("stdio start, times FastMCP", starts["ours"], starts["fastmcp"], 12, "ms"),
        _times("stdio call of a def, times mcp", calls["ours"], calls["mcp"], 10, "us"),
        _times("stdio call, inline, of the floor", calls["inline"], calls["floor"], 0.6, "us"),
        Figure(
            "memory after 400 calls, of mcp",
            memory["ours"] / memory["mcp"],
            0.45,
            True,
            f"{memory['ours'] / 1024:.0f} against {memory['mcp'] / 1024:.0f} MB",
        ),
    ]


def _times(what: str, ours: float, theirs: float, limit: float, unit: str) -> Figure:
    scale = {"ms": 1e3, "us": 1e6}[unit]
    detail = f"{ours * scale:.0f} against {theirs * scale:.0f} {unit}"
    return Figure(what, theirs / ours, limit, False, detail)


def _starts() -> dict[str, float]:
    found = {name: [] for name in ("ours", "mcp", "fastmcp")}  # type: dict[str, list[float]]
    for each in range(STARTS + 1):
        for name, times in found.items():
            client = Client(name)
            client.close()
            if each:  # The first compiles the bytecode.
                times.append(client.started)
    return {name: statistics.median(times) for name, times in found.items()}


def _calls() -> tuple[dict[str, float], dict[str, int]]:
    jobs = {
        "ours": ("ours", "add"),
        "inline": ("ours", "add_inline"),
        "mcp": ("mcp", "add"),
        "floor": ("floor", "add"),
    }
    medians = {name: [] for name in jobs}  # type: dict[str, list[float]]
    memory: dict[str, int] = {}
    for _ in range(ROUNDS):
        for name, (server, tool) in jobs.items():
            client = Client(server)
            medians[name].append(statistics.median(client.call(tool) for _ in range(CALLS)))
            memory[name] = client.resident()
            client.close()
    return {name: statistics.median(found) for name, found in medians.items()}, memory
