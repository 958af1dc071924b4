"""MemoryStore: tasks in this process, which are lost when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from time import time

from ..core.limits import TaskLimits
from .idempotency_keys import checked_repeat
from .task_admission import check_room
from .task_expiry import ExpiryClock
from .task_record import TaskRecord
from .task_store import Change, Claim
from .transitions import claimed

_RECORD_BYTES = 1024
"""Approximate size of a record without its arguments and result."""
_EXPIRED_AT_A_TIME = 1_000
"""Expired records that are checked in one step, because an event loop waits meanwhile."""


class MemoryStore:
    """Keeps records in this process; they are lost when it ends. *clock* is for tests."""

    blocks = False
    is_failing = False

    def __init__(self, clock: Callable[[], float] = time) -> None:
        self.now = clock
        self._expiry = ExpiryClock(clock)
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskRecord] = {}
        # Dicts keep their order, and removing an entry is quick.
        self._waiting: dict[str, None] = {}
        self._queues: dict[str, set[str]] = {}
        """The ids of the waiting tasks of each tool."""
        self._unfinished: dict[str, int] = {}
        """How many unfinished tasks each owner has."""
        self._by_owner: dict[str, dict[str, None]] = {}
        """The ids of each owner's tasks, in order of creation."""
        self._keys: dict[tuple[str, str], str] = {}
        self._expiries: list[tuple[float, str]] = []
        """A heap with one entry per expiring task: when to check it, and its id."""
        self._bytes = 0

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        with self._lock:
            if task.idempotency_key is not None:
                known = self._keys.get((task.owner, task.idempotency_key))
                if known is not None:
                    return checked_repeat(self._tasks[known], task)
            check_room(task, self, limits)
            if task.idempotency_key is not None:
                self._keys[task.owner, task.idempotency_key] = task.id
            self._unfinished[task.owner] = self._unfinished.get(task.owner, 0) + 1
            self._put(task)
            return task

    def bytes_with(self, task: TaskRecord) -> int:
        return self._bytes + _size(task)

    def waits(self, tool: str, count: int) -> bool:
        return len(self._queues.get(tool, ())) >= count

    def has_unfinished(self, owner: str, count: int) -> bool:
        return self._unfinished.get(owner, 0) >= count

    def get(self, id: str) -> TaskRecord | None:
        return self._tasks.get(id)

    def change(self, id: str, change: Change) -> TaskRecord | None:
        with self._lock:
            return self._change(id, change)

    def claim(
        self, worker: str, lease: float, count: int, tools: Collection[str]
    ) -> list[TaskRecord]:
        take = partial(claimed, worker=worker, lease=lease)
        with self._lock:
            ids = [id for id, _ in zip(self._waiting, range(count), strict=False)]
            return [task for id in ids if (task := self._change(id, take)) is not None]

    def renew(self, workers: Collection[str], lease: float) -> None:
        """Do nothing: a worker that dies takes this store with it."""

    def claims(self, workers: Collection[str] | None = None) -> list[Claim]:
        return [
            Claim(task.id, task.worker, task.fence, task.lease)
            for task in tuple(self._tasks.values())
            if task.worker and (workers is None or task.worker in workers)
        ]

    def page(
        self, owner: str | None, after: str | None, count: int, *, newest_first: bool = False
    ) -> list[TaskRecord]:
        with self._lock:
            known = self._tasks if owner is None else self._by_owner.get(owner, {})
            ids = reversed(known) if newest_first else iter(known)
            if after is not None and after not in ids:  # `in` advances to the one after it.
                return []
            return [self._tasks[id] for id in islice(ids, count)]

    def remove(self, id: str) -> None:
        with self._lock:
            task = self._tasks.get(id)
            if task is not None:
                self._remove(task)

    def remove_expired(self) -> int:
        now = self._expiry.now()
        removed = 0
        with self._lock:
            for _ in range(_EXPIRED_AT_A_TIME):
                if not self._expiries or self._expiries[0][0] > now:
                    break
                _, id = heappop(self._expiries)
                task = self._tasks.get(id)
                if task is None or task.expires is None:
                    continue
                if task.expires <= now and task.state != "working":
                    self._remove(task)
                    removed += 1
                else:
                    # A task that runs longer than its ttl is checked again.
                    heappush(self._expiries, (max(task.expires, now + 1), id))
        return removed

    def try_to_write(self) -> None:
        """Do nothing: memory can be written."""

    def changes(self) -> None:
        """Return None: no other process can change these records."""

    def close(self) -> None:
        pass

    def _change(self, id: str, change: Change) -> TaskRecord | None:
        before = self._tasks.get(id)
        after = None if before is None else change(before, self.now())
        if before is not None and after is not None:
            if after.is_final and not before.is_final:
                self._count_finished(after.owner)
            self._put(after)
        return after

    def _put(self, task: TaskRecord) -> None:
        before = self._tasks.get(task.id)
        self._bytes += _size(task) - (0 if before is None else _size(before))
        self._tasks[task.id] = task
        if before is None:
            self._by_owner.setdefault(task.owner, {})[task.id] = None
        if task.is_waiting:
            self._waiting[task.id] = None
            self._queues.setdefault(task.tool, set()).add(task.id)
        else:
            self._leave_queue(task)
        # A later expiry is noticed when the earlier entry is due.
        known = None if before is None else before.expires
        if task.expires is not None and (known is None or task.expires < known):
            heappush(self._expiries, (task.expires, task.id))

    def _remove(self, task: TaskRecord) -> None:
        del self._tasks[task.id]
        of_owner = self._by_owner[task.owner]
        del of_owner[task.id]
        if not of_owner:
            del self._by_owner[task.owner]
        self._bytes -= _size(task)
        self._leave_queue(task)
        if task.idempotency_key is not None:
            self._keys.pop((task.owner, task.idempotency_key), None)
        if not task.is_final:
            self._count_finished(task.owner)

    def _leave_queue(self, task: TaskRecord) -> None:
        self._waiting.pop(task.id, None)
        self._queues.get(task.tool, set()).discard(task.id)

    def _count_finished(self, owner: str) -> None:
        left = self._unfinished.get(owner, 0) - 1
        if left > 0:
            self._unfinished[owner] = left
        else:
            self._unfinished.pop(owner, None)


def _size(task: TaskRecord) -> int:
    return _RECORD_BYTES + len(task.arguments) + len(task.result or b"")
