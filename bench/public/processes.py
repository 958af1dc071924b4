"""Servers on a core of their own, and what /proc says about them."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..mcp_stdio import cpu_seconds

START_SECONDS = 60


class NotStarted(Exception):
    """A server ended, or does not listen."""


def cores() -> tuple[set[int], set[int]]:
    """The core of the measured server, and those of everything else."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str],
    port: int,
    *,
    log: Path,
    folder: Path,
    variables: Mapping[str, str],
    core: set[int],
) -> Iterator[int]:
    """Start a program in *folder* that listens on *port*, and give its process id."""
    log.parent.mkdir(parents=True, exist_ok=True)
    own = os.sched_getaffinity(0)
    # The process inherits the core, so that its first threads have it too.
    os.sched_setaffinity(0, core)
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, env=dict(variables), stdout=output, stderr=output, cwd=folder
            )
    finally:
        os.sched_setaffinity(0, own)
    try:
        _wait_for(port, process, log)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            said = " ".join(log.read_text(errors="replace").strip().splitlines()[-5:])
            raise NotStarted(f"it ended with the status {process.returncode}: {said}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise NotStarted(f"nothing listens on port {port} after {START_SECONDS} seconds; see {log}")


def processes(pid: int) -> list[int]:
    """The process and those that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += processes(int(child))
    return found


def cpu(pid: int) -> float:
    """The CPU time of a server so far, in seconds, with all threads and child processes."""
    return sum(cpu_seconds(each) for each in processes(pid))


def resident(pid: int) -> float:
    """The resident memory of a server, in MB."""
    total = 0
    for each in processes(pid):
        status = Path(f"/proc/{each}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        total += int(line.split()[1])
    return total / 1024
