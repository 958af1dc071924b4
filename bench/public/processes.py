"""Servers on a core of their own, and what /proc says about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.ports import Listening, listening

from ..mcp_stdio import cpu_seconds


def cores() -> tuple[set[int], set[int]]:
    """The core of the measured server, and those of everything else."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


@contextmanager
def running(
    command: Callable[[int], Sequence[str]],
    *,
    log: Path,
    folder: Path,
    variables: Mapping[str, str],
    core: set[int],
) -> Iterator[Listening]:
    """Start a program in *folder* that listens on the port that *command* gets."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with listening(
        command,
        log,
        env=dict(variables),
        cwd=folder,
        # Before its start, so that its first threads have the core too.
        preexec_fn=lambda: os.sched_setaffinity(0, core),
    ) as server:
        yield server


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
