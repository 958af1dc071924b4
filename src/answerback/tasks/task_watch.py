"""TaskWatch: a thread that looks after the tasks in a store that other processes change too.

It keeps the claims of this worker, finds those of dead workers, removes expired records, writes
progress, and notices the changes of other processes. While this worker has no task it looks ten
times a second, which takes less than a thousandth of a core.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic, time

from ..errors import Unavailable
from .task_record import Task
from .task_runner import LEASE, TaskRunner
from .task_store import TaskStore
from .transitions import given_up

_BUSY, _IDLE = 0.02, 0.1
"""The seconds between two looks while this worker has tasks or waits for one, and otherwise."""
_REPORTS, _RECONCILE = 0.2, 1.0
"""The seconds between two writes of progress, and between two looks for dead workers."""
_AFTER_FAILURE = 1.0


class TaskWatch:
    """*is_waiting* tells whether a client waits for a task; *on_other* is called after a change."""

    def __init__(
        self,
        store: TaskStore,
        runner: TaskRunner,
        is_waiting: Callable[[], bool],
        on_other: Callable[[], None],
        on_change: Callable[[Task], None],
    ) -> None:
        self._store = store
        self._runner = runner
        self._is_waiting = is_waiting
        self._on_other = on_other
        self._on_change = on_change
        self._version = -1
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
        while not self._stopped.wait(seconds):
            try:
                self._look()
                is_busy = self._runner.runs or self._is_waiting()
                seconds = _BUSY if is_busy else _IDLE
            except Unavailable:
                seconds = _AFTER_FAILURE

    def _look(self) -> None:
        now = monotonic()
        for step, due in self._due.items():
            if now >= due:
                step()
                self._due[step] = now + self._every[step]
        version = self._store.version()
        if version != self._version:
            self._version = version
            self._catch_up()

    def _catch_up(self) -> None:
        """Another process has changed something: a task may be cancelled, or wait for a worker."""
        for run in tuple(self._runner.runs.values()):
            task = self._store.get(run.task.id)
            if task is None or task.fence != run.task.fence or task.is_final:
                run.cancel()
        self._runner.fill()
        self._on_other()

    def _renew(self) -> None:
        if self._runner.runs:
            self._store.renew(self._runner.worker, time() + LEASE)

    def _reconcile(self) -> None:
        now = time()
        self._store.remove_expired(now)
        for task in self._store.running():
            if task.worker != self._runner.worker and is_lost(task, now):
                change = partial(given_up, worker=task.worker, fence=task.fence, now=now)
                changed = self._store.change(task.id, change)
                if changed is not None:
                    self._on_change(changed)
        self._runner.fill()


def new_worker_name() -> str:
    """A name that no other worker has or had; other workers see in it whether this one lives."""
    return f"{os.getpid()}/{_namespace()}/{secrets.token_hex(6)}"


def is_lost(task: Task, now: float) -> bool:
    """Whether the worker that has claimed the task is dead, or does not renew its claim."""
    return task.lease < now or not _lives(task.worker)


def _lives(worker: str) -> bool:
    pid, namespace, _ = worker.split("/")
    if namespace != _namespace():
        return True  # In another container; its lease tells.
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _namespace() -> str:
    """The namespace of process ids; there is one for each container."""
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""
