"""MCP over stdio: start-up, calls and memory, compared with the SDK, FastMCP and a bare loop."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from .report import Figure

STARTS = 7
CALLS = 400
ROUNDS = 3
SERVERS = {
    "ours": ["bench/apps.py", "mcp"],
    "mcp": ["-m", "bench.peers.official"],
    "fastmcp": ["-m", "bench.peers.fast"],
    "bare": ["-m", "bench.bare_mcp"],
    "sizes": ["-m", "answerback", "mcp", "bench/sizes_app.py"],
    "mcp sizes": ["-m", "bench.peers.sizes_official"],
}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Client:
    """Starts a server as a process and initializes it."""

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
        response = self.ask("tools/call", {"name": tool, "arguments": {"x": 7, "y": 3}})
        seconds = time.perf_counter() - start
        if b'"result":10' not in response.replace(b" ", b"").replace(b"\\", b""):
            raise RuntimeError(f"a wrong response: {response!r}")
        return seconds

    def cpu(self) -> float:
        """The CPU time of the server in seconds."""
        return cpu_seconds(self.process.pid)

    def resident(self) -> int:
        """The resident memory in kilobytes."""
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


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process in seconds, to the nanosecond, all its threads included."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def measure() -> list[Figure]:
    starts = _starts()
    calls, cpu, memory = _calls()
    return [
        _times("stdio start, times mcp", starts["ours"], starts["mcp"], 8, "ms"),
        _times("stdio start, times FastMCP", starts["ours"], starts["fastmcp"], 12, "ms"),
        _times("stdio call of a def, CPU, times mcp", cpu["ours"], cpu["mcp"], 10, "us"),
        _times("stdio call, inline, times a bare loop", calls["inline"], calls["bare"], 0.6, "us"),
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
    found: dict[str, list[float]] = {name: [] for name in ("ours", "mcp", "fastmcp")}
    for each in range(STARTS + 1):
        for name, times in found.items():
            client = Client(name)
            client.close()
            if each:  # The first start compiles the bytecode.
                times.append(client.started)
    return {name: statistics.median(times) for name, times in found.items()}


def _calls() -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    """The elapsed time and the CPU time of a call, and the memory of each server."""
    jobs = {
        "ours": ("ours", "add"),
        "inline": ("ours", "add_inline"),
        "mcp": ("mcp", "add"),
        "bare": ("bare", "add"),
    }
    medians: dict[str, list[float]] = {name: [] for name in jobs}
    cpu: dict[str, list[float]] = {name: [] for name in jobs}
    memory: dict[str, int] = {}
    for _ in range(ROUNDS):
        for name, (server, tool) in jobs.items():
            client = Client(server)
            client.call(tool)  # The first call builds decoders and starts threads.
            before = client.cpu()
            medians[name].append(statistics.median(client.call(tool) for _ in range(CALLS)))
            cpu[name].append((client.cpu() - before) / CALLS)
            memory[name] = client.resident()
            client.close()
    elapsed = {name: statistics.median(found) for name, found in medians.items()}
    # The least of all rounds: other load on the machine only adds to a figure.
    return elapsed, {name: min(found) for name, found in cpu.items()}, memory
