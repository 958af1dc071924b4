"""Kills workers and servers in the middle of tasks, and looks at what became of each task.

`make tasks` runs this with a thousand tasks, and the test beside it with a few.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import Server, serving
from tests.tasks.task_client import FINAL, PREFIX, TASKS

APP = Path(__file__).with_name("crash_app.py")
SECONDS = 90.0
_META = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientCapabilities": {"extensions": {TASKS: {}}},
}


@dataclass
class Outcome:
    """What became of the acknowledged tasks."""

    tasks: dict[str, dict[str, Any]]
    """By id: the task as `tasks/get` shows it at the end."""
    calls: dict[str, tuple[str, int]]
    """By id: the tool and its argument."""
    starts: Counter[str] = field(default_factory=Counter)

    @property
    def states(self) -> Counter[str]:
        return Counter(task["status"] for task in self.tasks.values())

    @property
    def wrong(self) -> list[str]:
        """The tasks that ended in a way that they must not."""
        found = []
        for id, (tool, n) in self.calls.items():
            task = self.tasks[id]
            starts = self.starts[f"{tool} {n}"]
            if task["status"] == "completed":
                is_right = task["result"]["structuredContent"] == {"result": n} and starts > 0
            else:
                lost = "may have taken effect" in task.get("statusMessage", "")
                is_right = task["status"] == "failed" and lost and tool == "once"
            if not is_right or (tool == "once" and starts > 1):
                found.append(f"{tool} {n}: {task}, {starts} starts")
        return found


def crash(count: int, folder: Path, workers: int = 3) -> Outcome:
    """Create *count* tasks; kill a worker, then the whole server; start another and wait."""
    os.environ["STARTS"] = str(folder / "starts")
    flags = ("--workers", str(workers), "--tasks", str(folder / "tasks.db"))
    calls: dict[str, tuple[str, int]] = {}
    with serving(APP, *flags) as server:
        client = _Client(server.url)
        for n in range(count):
            if n == count // 3:
                os.kill(_children(server)[0], signal.SIGKILL)
            if (id := client.create("once" if n % 2 else "again", n)) is not None:
                calls[id] = ("once" if n % 2 else "again", n)
        with _stopped(server):
            for pid in _children(server):
                os.kill(pid, signal.SIGKILL)
        server.process.kill()
        server.process.wait(60)
        client.close()
    with serving(APP, *flags) as server:
        client = _Client(server.url)
        tasks = {id: client.until_final(id) for id in calls}
        client.close()
    starts = Counter((folder / "starts").read_text().splitlines())
    return Outcome(tasks, calls, starts)


@contextmanager
def _stopped(server: Server) -> Iterator[None]:
    """Stop the parent, so that it replaces no worker meanwhile."""
    os.kill(server.process.pid, signal.SIGSTOP)
    yield


def _children(server: Server) -> list[int]:
    pid = server.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class _Client:
    def __init__(self, url: str) -> None:
        self._host = url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(self._host, timeout=60)

    def create(self, tool: str, n: int) -> str | None:
        """The id of the new task; None if the server did not acknowledge it."""
        params = {"name": tool, "arguments": {"n": n}}
        with suppress(OSError, http.client.HTTPException):
            id: str = self._request("tools/call", tool, params)["taskId"]
            return id
        self.close()
        self._connection = http.client.HTTPConnection(self._host, timeout=60)
        return None

    def close(self) -> None:
        self._connection.close()

    def until_final(self, id: str) -> dict[str, Any]:
        until = time.monotonic() + SECONDS
        while True:
            task: dict[str, Any] = self._request("tasks/get", id, {"taskId": id})
            if task["status"] in FINAL:
                return task
            assert time.monotonic() < until, f"{id} has not ended: {task}"
            time.sleep(0.02)

    def _request(self, method: str, name: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {**params, "_meta": _META},
        }
        headers = {
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": name,
        }
        self._connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = json.loads(self._connection.getresponse().read())
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        outcome = crash(1000, Path(folder))
    again = sum(count > 1 for count in outcome.starts.values())
    sys.stdout.write(
        f"{len(outcome.calls)} tasks acknowledged: {dict(outcome.states)}; "
        f"{again} started again; {len(outcome.wrong)} wrong\n"
    )
    sys.stdout.writelines(f"  {each}\n" for each in outcome.wrong)
    return int(bool(outcome.wrong))


if __name__ == "__main__":
    sys.exit(main())
