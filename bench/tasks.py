"""Tasks over MCP: how soon they start and end, what an idle server costs, and that none is lost.

fastmcp-tasks is measured beside it if `FASTMCP_TASKS_PYTHON` names a Python that has it.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ports import listening

from .report import Figure

HERE = Path(__file__).parent
PREFIX = "io.modelcontextprotocol/"
META = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientInfo": {"name": "bench", "version": "1"},
    PREFIX + "clientCapabilities": {"extensions": {PREFIX + "tasks": {}}},
}
PICK_UPS, CANCELS = 200, 20
IDLE_SECONDS = 10.0
MANY, CLIENTS = 10_000, 4
FINAL = ("completed", "failed", "cancelled")


def measure() -> list[Figure]:
    figures: list[Figure] = []
    with _served() as (port, pid):
        beside = _beside()
        figures += _times("memory", 2.0, port, beside)
        figures.append(_idle("memory", pid))
        figures.append(_many("memory", port))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "tasks.db"))
        with _served("--tasks", path) as (port, pid):
            figures += _times("a file", 5.0, port, "")
            figures.append(_idle("a file", pid))
            figures.append(_many("a file", port))
    with _served("--workers", "3") as (port, pid):
        figures += _times("3 workers", 5.0, port, "", cancels=False)
        figures.append(_idle("3 workers", pid))
    return figures


class Client:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def request(self, method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": params.get("name") or params["taskId"],
        }
        self._connection.request("POST", "/mcp", json.dumps(body), headers)
        text = self._connection.getresponse().read().decode()
        # A server may answer with an event stream of one event.
        message = json.loads(text.partition("data: ")[2] if text.startswith("event") else text)
        if "result" not in message:
            raise RuntimeError(f"{method}: {message}")
        return message["result"]

    def call(self, name: str, **arguments: Any) -> Any:
        return self.request("tools/call", name=name, arguments=arguments)

    def finished(self, id: str) -> Any:
        while (task := self.request("tasks/get", taskId=id))["status"] not in FINAL:
            time.sleep(0.002)
        return task

    def counts(self) -> list[int]:
        found: list[int] = self.call("counts")["structuredContent"]["result"]
        return found


def pick_ups(port: int) -> list[float]:
    """The milliseconds from sending the request to the start of the function."""
    client = Client(port)
    found = []
    for n in range(PICK_UPS):
        sent = time.time()
        id = client.call("stamp", n=-n)["taskId"]
        started = client.finished(id)["result"]["structuredContent"]["result"]
        found.append((started - sent) * 1e3)
    return found


def cancellations(port: int) -> list[float]:
    """The milliseconds from sending the cancellation to the end of the function."""
    client = Client(port)
    found = []
    for _ in range(CANCELS):
        id = client.call("sleep")["taskId"]
        time.sleep(0.05)
        sent = time.time()
        client.request("tasks/cancel", taskId=id)
        until = time.monotonic() + 5
        while (ended := client.counts()[2] / 1e6) < sent and time.monotonic() < until:
            time.sleep(0.002)
        found.append((ended - sent) * 1e3)
    return found


def _times(
    where: str, limit: float, port: int, beside: str, *, cancels: bool = True
) -> Iterator[Figure]:
    p50 = statistics.median(pick_ups(port))
    detail = "; ".join(filter(None, [f"of {PICK_UPS} tasks", beside]))
    yield Figure(f"pick-up of a task, p50 in ms ({where})", p50, limit, True, detail)
    if cancels:
        p50 = statistics.median(cancellations(port))
        detail = f"of {CANCELS} tasks"
        yield Figure(f"cancellation of a task, p50 in ms ({where})", p50, 100, True, detail)


def _idle(where: str, pid: int) -> Figure:
    """The CPU of a server that has nothing to do, after tasks have run."""
    pids = [pid, *_children(pid)]
    time.sleep(2)
    before = [_cpu_seconds(each) for each in pids]
    time.sleep(IDLE_SECONDS)
    used = max(_cpu_seconds(each) - was for each, was in zip(pids, before, strict=True))
    percent = round(100 * used / IDLE_SECONDS, 3)
    detail = f"of one core, over {IDLE_SECONDS:g} s, the busiest process"
    return Figure(f"CPU of an idle server in % ({where})", percent, 0.2, True, detail)


def _many(where: str, port: int) -> Figure:
    before = Client(port).counts()
    began = time.monotonic()

    def create(first: int) -> list[str]:
        client = Client(port)
        numbers = range(first, MANY + 1, CLIENTS)
        return [client.call("stamp", n=n)["taskId"] for n in numbers]

    with ThreadPoolExecutor(CLIENTS) as pool:
        ids = [id for each in pool.map(create, range(1, CLIENTS + 1)) for id in each]
    client = Client(port)
    completed = sum(client.finished(id)["status"] == "completed" for id in ids)
    seconds = time.monotonic() - began
    after = client.counts()
    wrong = (MANY - completed) + abs(after[0] - before[0] - MANY) + abs(after[1] - before[1] - MANY)
    detail = f"{MANY:,} tasks made, run and read in {seconds:.1f} s"
    return Figure(f"tasks lost or doubled ({where})", wrong, 0, True, detail)


def _beside() -> str:
    """The figures of fastmcp-tasks, in words."""
    python = os.environ.get("FASTMCP_TASKS_PYTHON")
    if not python:
        return ""
    words = [python, str(HERE / "peers" / "fast_tasks.py")]
    with (
        tempfile.TemporaryDirectory() as folder,
        listening(lambda port: [*words, str(port)], Path(folder, "log")) as server,
    ):
        p50 = statistics.median(pick_ups(server.port))
        cancel = statistics.median(cancellations(server.port))
        idle = _idle("", server.process.pid).ratio
    return f"fastmcp-tasks {p50:.1f} ms; its cancellation {cancel:.1f} ms, idle {idle:.2f} %"


@contextmanager
def _served(*flags: str) -> Iterator[tuple[int, int]]:
    command = [sys.executable, str(HERE / "tasks_app.py"), "serve", "--port", "0", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        text = ""
        while "Ctrl-C" not in text:
            line = process.stderr.readline()
            assert line, text
            text += line
        port = int(text.partition("/functions/")[0].rpartition(":")[2])
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(40)
        process.stderr.close()


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in path.read_text().split()] if path.exists() else []


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
