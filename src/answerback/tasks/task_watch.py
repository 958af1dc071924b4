"""TaskWatch: a thread that maintains the tasks in a store shared with other processes.

It renews this worker's claims, finds those of dead workers, removes expired records, writes
progress, and notices other processes' changes. While nothing changes it polls every two seconds,
which takes less than a thousandth of a core.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic, time

from ..calls.failures import log_internal_error
from ..errors import Unavailable
from .file_notice import FileNotice
from .task_expiry import ExpiryClock
from .task_record import TaskRecord
from .task_runner import LEASE, TaskRunner
from .task_store import Claim, TaskStore
from .transitions import given_up

_GAP = 0.01
"""Minimum seconds between polls; this worker's own writes also wake the watch."""
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
        runner: TaskRunner,
        is_waiting: Callable[[], bool],
        wake: Callable[[TaskRecord | None], None],
    ) -> None:
        self._store = store
        self._runner = runner
        self._is_waiting = is_waiting
        self._wake = wake
        self._version = -1
        self._next_step = 0.0
        self._clocks = time(), monotonic()
        self._expiry = ExpiryClock()
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

    def _work(self) -> None:
        seconds = 0.0
        notice: FileNotice | None = None
        while not self._stopped.wait(seconds):
            try:
                if notice is None:
                    self._store.version()  # This opens the file.
                    notice = FileNotice(self._store.notice_path)
                self._look()
                seconds = _GAP
                is_busy = bool(self._runner.runs) or self._is_waiting()
                notice.wait(_REPORTS if is_busy else _RECONCILE, urgent=is_busy)
            except Unavailable:
                seconds = _AFTER_FAILURE  # Already logged.
                # The file may be opened again with another log.
                if notice is not None:
                    notice.close()
                    notice = None
            except Exception:  # noqa: BLE001 -- the tasks of this worker need the watch
                log_internal_error("looking after tasks")
                seconds = _AFTER_FAILURE
        if notice is not None:
            notice.close()

    def _look(self) -> None:
        now = monotonic()
        if self._runner.runs or now >= self._next_step:
            for step, due in self._due.items():
                if now >= due:
                    step()
                    self._due[step] = now + self._every[step]
            # Without a task of its own a worker has nothing to renew or to write.
            self._next_step = self._due[self._reconcile]
        version = self._store.version()
        if version != self._version:
            self._version = version
            self._catch_up()

    def _catch_up(self) -> None:
        """Act on another process's change: a task may be cancelled, or wait for a worker."""
        # Before asking the store: a task claimed meanwhile is not in its answer.
        runs = tuple(self._runner.runs.values())
        held = {(claim.id, claim.fence) for claim in self._store.claims()} if runs else ()
        for run in runs:
            if (run.task.id, run.task.fence) not in held:
                run.cancel()
        self._runner.fill()
        self._wake(None)

    def _renew(self) -> None:
        names = tuple(self._runner.names)
        if self._runner.runs or len(names) > 1:
            self._store.renew(names, time() + LEASE)

    def _reconcile(self) -> None:
        now = time()
        if self._store.is_failing:
            self._store.try_to_write()
        self._store.remove_expired(self._expiry.now())
        self._notice_jump(now, monotonic())
        leases_count = monotonic() >= self._leases_count_from
        for claim in self._store.claims():
            if claim.worker != self._runner.worker and is_lost(claim, now if leases_count else 0):
                change = partial(given_up, worker=claim.worker, fence=claim.fence, now=now)
                changed = self._store.change(claim.id, change)
                if changed is not None:
                    self._wake(changed)
        self._runner.fill()

    def _notice_jump(self, now: float, ticks: float) -> None:
        """After the clock jumps or the machine pauses, let workers renew their claims."""
        then, ticks_then = self._clocks
        self._clocks = now, ticks
        paused = ticks - ticks_then
        if abs(now - then - paused) > _JUMP or paused > LEASE / 3:
            self._leases_count_from = ticks + LEASE / 2
            self._renew()


def new_worker_name() -> str:
    """Return a unique worker name, in which other workers see whether this one is alive."""
    return f"{os.getpid()}/{_namespace()}/{secrets.token_hex(6)}"


def is_lost(claim: Claim, now: float) -> bool:
    """Return whether the worker is dead, or has stopped renewing its claim."""
    return claim.lease < now or not _lives(claim.worker)


def _lives(worker: str) -> bool:
    pid, namespace, _ = worker.split("/")
    if namespace != _namespace():
        return True  # In another container; its lease decides.
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _namespace() -> str:
    """Return the namespace of process ids; each container has its own."""
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""
