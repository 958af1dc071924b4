"""MCP over stdio: calls and memory, compared with the SDK, FastMCP and a bare loop."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from .report import Chart, Figure, Found

CALLS = 400
ROUNDS = 5
SERVERS = {
    "ours": ["bench/apps.py", "mcp"],
    "mcp": ["-m", "bench.peers.official"],
    "fastmcp": ["-m", "bench.peers.fast"],
    "bare": ["-m", "bench.bare_mcp"],
    "sizes": ["-m", "answerback", "mcp", "bench/sizes_app.py"],
    "mcp sizes": ["-m", "bench.peers.sizes_official"],
}
LABELS = {
    "inline": "Answerback, inline tool",
    "ours": "Answerback, def tool",
    "async": "Answerback, async tool",
    "mcp": "mcp",
    "fastmcp": "FastMCP",
    "bare": "bare loop",
}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Client:
    """Starts a server as a process and initializes it."""

    def __init__(self, server: str | list[str]) -> None:
        """*server* is a name in `SERVERS`, or the arguments of Python."""
        arguments = SERVERS[server] if isinstance(server, str) else server
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
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
        return resident(self.process.pid)

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


def resident(pid: int) -> int:
    """The resident memory of a process in kilobytes."""
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1])


def measure() -> Found:
    elapsed, cpu, memory = _calls()
    rows: dict[str, list[float | None]] = {
        label: [cpu[name] * 1e6, elapsed[name] * 1e6] for name, label in LABELS.items()
    }
    return [
        Chart(
            name="stdio",
            title="A call over stdio",
            unit="µs",
            columns=["CPU time of the server", "time to the answer"],
            rows=rows,
        ),
        # A def runs in a thread, and its result comes back to the event loop: two wake-ups. The
        # peers run it on their loop, where it blocks all other calls.
        _times("stdio call of a def, CPU, times mcp", cpu["ours"], cpu["mcp"], 5),
        _times("stdio call of a def, CPU, times FastMCP", cpu["ours"], cpu["fastmcp"], 7),
        _times("stdio call of an async tool, CPU, times mcp", cpu["async"], cpu["mcp"], 12),
        _times("stdio call, inline, CPU, times mcp", cpu["inline"], cpu["mcp"], 18),
        Figure(
            f"stdio, memory after {CALLS} calls, of mcp",
            memory["ours"] / memory["mcp"],
            0.42,
            True,
            f"{memory['ours'] / 1024:.0f} against {memory['mcp'] / 1024:.0f} MB",
        ),
    ]


def _times(what: str, ours: float, theirs: float, limit: float) -> Figure:
    detail = f"{ours * 1e6:.0f} against {theirs * 1e6:.0f} µs"
    return Figure(what, theirs / ours, limit, False, detail)


def _calls() -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
    """The elapsed time and the CPU time of a call, and the memory of each server."""
    jobs = {
        "inline": ("ours", "add_inline"),
        "ours": ("ours", "add"),
        "async": ("ours", "add_async"),
        "mcp": ("mcp", "add"),
        "fastmcp": ("fastmcp", "add"),
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
    # The least of all rounds: other load on the machine only adds to a figure.
    elapsed = {name: min(found) for name, found in medians.items()}
    return elapsed, {name: min(found) for name, found in cpu.items()}, memory
