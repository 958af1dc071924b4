"""Helpers for tests of server processes: waiting, background calls, and workers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BOUND = 60.0


def wait_until(condition: Callable[[], Any]) -> Any:
    """Wait until *condition* returns a true value, and return it; fail after `BOUND` seconds."""
    end = time.monotonic() + BOUND
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {BOUND} seconds: {condition}")


def refuses_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


def workers_of(server: Any) -> set[int]:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return {int(pid) for pid in children.read_text().split()}


def is_running(pid: int) -> bool:
    """Whether the process runs; one that exited may stay as a zombie that nobody collects."""
    try:
        return state_of(pid) != "Z"
    except FileNotFoundError:
        return False


def state_of(pid: int) -> str:
    """The letter of the kernel for what a process does: T if it is stopped, Z for a zombie."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class BackgroundCall(threading.Thread):
    """Makes a call in another thread."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.result: Any = None
        self._call = call
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call()
        except Exception as exc:  # noqa: BLE001 -- the test looks at the result
            self.result = exc
