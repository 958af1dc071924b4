"""TaskWatch: a thread that maintains the tasks in a store shared with other processes.

It renews this worker's claims, finds those of dead workers, removes expired records, writes
progress, and notices other processes' changes. While no task runs here and no client waits, it does
so every second or two, which takes less than a thousandth of a core.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from time import monotonic

from ..calls.failures import log_internal_error
from ..errors import Unavailable
from .task_runner import LEASE, TaskRunner
from .task_store import Claim, TaskChanges, TaskStore
from .transitions import given_up

_GAP = 0.01
"""Minimum seconds between polls, however many notices and wake-ups there are."""
_REPORTS, _RECONCILE = 0.2, 2.0
"""The seconds between writes of progress, and between checks for dead workers."""
_AFTER_FAILURE = 1.0
_JUMP = 5.0
"""The clock drift, in seconds, tolerated between checks for dead workers."""


class TaskWatch:
    """*is_waiting* says whether a client waits for a task; *wake* makes it check the task."""

    def __init__(
        self,
        store: TaskStore,
        changes: TaskChanges,
        runner: TaskRunner,
        is_waiting: Callable[[], bool],
        wake: Callable[[str | None], None],
    ) -> None:
        self._store = store
        self._changes = changes
        self._runner = runner
        self._is_waiting = is_waiting
        self._wake = wake
        self._next_step = 0.0
        self._clocks: tuple[float, float] | None = None
        self._leases_count_from = 0.0
        self._due = {self._reconcile: 0.0, self._renew: 0.0, self._runner.write_messages: 0.0}
        self._every = {
            self._reconcile: _RECONCILE,
            self._renew: LEASE / 3,
            self._runner.write_messages: _REPORTS,
        }
        self._stopped = threading.Event()
        name = "answerback-tasks-watch"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def wake(self) -> None:
        """Look more often from now on: a task runs here, or a client waits."""
        self._changes.wake()

    def _work(self) -> None:
        seconds = 0.0
        while not self._stopped.wait(seconds):
            try:
                self._take_steps()
                is_busy = bool(self._runner.runs) or self._is_waiting()
                limit = _REPORTS if is_busy else _RECONCILE
                changed = self._changes.wait(limit, is_urgent=is_busy)
                if changed is None or changed:
                    self._catch_up(changed)
                seconds = _GAP
            except Unavailable:
                seconds = _AFTER_FAILURE  # Already logged.
            except Exception:  # noqa: BLE001 -- the tasks of this worker need the watch
                log_internal_error("looking after tasks")
                seconds = _AFTER_FAILURE

    def _take_steps(self) -> None:
        now = monotonic()
        if not self._runner.runs and now < self._next_step:
            return
        for step, due in self._due.items():
            if now >= due:
                step()
                self._due[step] = now + self._every[step]
        # Without a task of its own a worker has nothing to renew or to write.
        self._next_step = self._due[self._reconcile]

    def _catch_up(self, changed: Collection[str] | None) -> None:
        """Act on another process's changes: a task may be cancelled, or wait for a worker.

        None stands for changes of any task.
        """
        # Before asking the store: a task claimed meanwhile is not in its answer.
        runs = tuple(self._runner.runs.values())
        held = set()
        if runs:
            held = {(claim.id, claim.fence) for claim in self._store.claims(self._runner.names)}
        for run in runs:
            if (run.task.id, run.task.fence) not in held:
                run.cancel()
        self._runner.fill()
        for id in (None,) if changed is None else changed:
            self._wake(id)

    def _renew(self) -> None:
        names = self._runner.names
        if names:
            self._store.renew(names, LEASE)

    def _reconcile(self) -> None:
        if self._store.is_failing:
            self._store.try_to_write()
        self._runner.settle_doubts()
        self._store.remove_expired()
        now = self._store.now()
        self._notice_jump(now, monotonic())
        leases_count = monotonic() >= self._leases_count_from
        own = self._runner.names
        for claim in self._store.claims():
            if claim.worker not in own and is_lost(claim, now if leases_count else 0):
                change = partial(given_up, worker=claim.worker, fence=claim.fence)
                if self._store.change(claim.id, change) is not None:
                    self._wake(claim.id)
        self._runner.fill()

    def _notice_jump(self, now: float, ticks: float) -> None:
        """After the clock jumps or the store was away, let workers renew their claims.

        So also at the start, because the store may have been away until then.
        """
        before, self._clocks = self._clocks, (now, ticks)
        then, ticks_then = before or (now, ticks)
        paused = ticks - ticks_then
        if before is None or abs(now - then - paused) > _JUMP or paused > LEASE / 3:
            self._leases_count_from = ticks + LEASE / 2
            self._renew()


def new_worker_name() -> str:
    """Return a unique worker name, in which other workers see whether this one is alive."""
    return f"{os.getpid()}/{_machine()}/{secrets.token_hex(6)}"


def is_lost(claim: Claim, now: float) -> bool:
    """Return whether the worker is dead, or has stopped renewing its claim."""
    return claim.lease < now or not _lives(claim.worker)


def _lives(worker: str) -> bool:
    pid, _, rest = worker.partition("/")
    if rest.rpartition("/")[0] != _machine():
        return True  # On another machine or in another container; its lease decides.
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError, OverflowError):
        pass  # It lives, or its name is not one of ours.
    return True


@lru_cache(1)
def _machine() -> str:
    """Return the running machine and the namespace of process ids; each container has its own.

    The namespace's number is the same on most machines, so the number of the machine's start is
    needed too.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}:{os.readlink('/proc/self/ns/pid').strip('pid:[]')}"
    except OSError:
        return socket.gethostname()
