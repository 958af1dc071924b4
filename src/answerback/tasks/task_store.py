"""TaskStore: the protocol for task stores, and the in-memory store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from time import monotonic, time
from typing import NamedTuple, Protocol, TypeAlias

from ..core.limits import TaskLimits
from ..errors import Conflict, RateLimited, Unavailable
from .task_record import TaskRecord
from .transitions import GRACE, claimed

Change: TypeAlias = Callable[[TaskRecord, float], "TaskRecord | None"]
"""A function from `transitions` with its arguments; it receives the record and the store's time.

Returning None leaves the record unchanged."""


class Claim(NamedTuple):
    """A worker's claim on a task; `TaskRecord` explains the members."""

    id: str
    worker: str
    fence: int
    lease: float


class TaskChanges(Protocol):
    """Waits for changes by other processes, in one thread."""

    def wait(self, seconds: float, *, is_urgent: bool) -> Collection[str] | None:
        """Wait up to *seconds* for another process to change a record; return the changed ids.

        None means that any record may have changed. It may return early without a change. A store
        that must poll for changes polls more often if *is_urgent*. Raises Unavailable.
        """

    def wake(self) -> None:
        """End a wait that is not urgent, or the next one. May be called from any thread."""


class TaskStore(Protocol):
    """Stores are thread-safe. Each method is one atomic step, even across processes.

    All times in records come from the store: the clocks of the processes that share it may differ.
    A store that cannot be read or written raises Unavailable, or Uncertain if the write may have
    taken effect; every record that it has returned remains stored.
    """

    @property
    def blocks(self) -> bool:
        """Whether methods may block, and so must be called in a thread, not on an event loop."""

    def now(self) -> float:
        """Return the store's time, in seconds since 1970."""

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        """Store a new task, with its times adjusted to the store's clock.

        If its idempotency key is known, return the task with that key.
        Raises KeyReused if that task's call differs, and Unavailable or RateLimited above a limit.
        """

    def get(self, id: str) -> TaskRecord | None: ...

    def change(self, id: str, change: Change) -> TaskRecord | None:
        """Change a record; return the new record, or None if nothing changed."""

    def claim(
        self, worker: str, lease: float, count: int, tools: Collection[str]
    ) -> list[TaskRecord]:
        """Claim up to *count* waiting tasks for *lease* seconds, oldest first.

        A store shared by several apps or versions claims only tasks for *tools*.
        """

    def renew(self, workers: Collection[str], lease: float) -> None:
        """Extend all claims of these workers to *lease* seconds from now."""

    def claims(self, workers: Collection[str] | None = None) -> list[Claim]:
        """Return the claims of these workers, or of all workers if None."""

    def page(
        self, owner: str | None, after: str | None, count: int, *, newest_first: bool = False
    ) -> list[TaskRecord]:
        """Return tasks in order of creation or the reverse; with *owner* None, for all owners.

        *after* is the id of the previous page's last task.
        """

    def remove(self, id: str) -> None:
        """Remove a record."""

    def remove_expired(self) -> int:
        """Remove expired records and return how many were removed; some may be left for later.

        Running and waiting tasks are not removed: they were promised to a client.
        """

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to read or write the store failed."""

    def try_to_write(self) -> None:
        """Try to write to the store, and update `is_failing`."""

    def changes(self) -> TaskChanges | None:
        """Return an object that waits for other processes' changes; None if there cannot be any."""

    def close(self) -> None: ...


class KeyReused(Conflict):
    """The idempotency key belongs to a call with a different tool or different arguments."""

    code = "KEY_REUSED"


def checked_repeat(found: TaskRecord, task: TaskRecord) -> TaskRecord:
    """Return the task with the idempotency key of *task*; raises KeyReused if the calls differ."""
    if found.fingerprint != task.fingerprint:
        raise KeyReused(
            "This idempotency key was used for another call",
            hint="use a new key for each call; send the same arguments to repeat one",
        )
    return found


_RETRY_AFTER = 5


class StoreUsage(Protocol):
    """Counts the tasks in a store."""

    def bytes_with(self, task: TaskRecord) -> int:
        """Return the size of all records, including this one."""

    def has_queued(self, tool: str, count: int) -> bool:
        """Return whether at least *count* of the tool's tasks are waiting for a worker."""

    def has_unfinished(self, owner: str, count: int) -> bool:
        """Return whether an owner has at least *count* unfinished tasks."""


def check_room(task: TaskRecord, usage: StoreUsage, limits: TaskLimits) -> None:
    """Raise Unavailable or RateLimited if there is no room for a new task."""
    if usage.bytes_with(task) > limits.total_bytes:
        raise Unavailable(
            f"The stored tasks take up too much space, more than {limits.total_bytes} bytes",
            retryable=True,
            retry_after=_RETRY_AFTER,
        )
    if task.is_waiting and usage.has_queued(task.tool, limits.queue):
        raise Unavailable(
            f"Too many tasks for this tool are waiting, more than {limits.queue}",
            retryable=True,
            retry_after=_RETRY_AFTER,
        )
    # Anonymous callers are not counted as one owner.
    if task.owner and usage.has_unfinished(task.owner, limits.per_owner):
        raise RateLimited(
            f"You have too many unfinished tasks, more than {limits.per_owner}",
            retryable=True,
            retry_after=_RETRY_AFTER,
        )


_JUMP = 5.0
"""How many seconds the clock may gain before it counts as a jump."""


class ExpiryClock:
    """The time used to expire a store's records; *clock* is the store's clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._clocks = clock(), monotonic()
        self._stands_until = 0.0

    def now(self) -> float:
        """Return the time, or 0 for some minutes after the clock was set forward.

        The jump made no record older, clients may still read the records, and the clock may be set
        back.
        """
        then, ticks_then = self._clocks
        now, ticks = self._clocks = self._clock(), monotonic()
        if now - then - (ticks - ticks_then) > _JUMP:
            self._stands_until = ticks + GRACE
        return now if ticks >= self._stands_until else 0.0


_RECORD_BYTES = 1024
"""Approximate size of a record without its arguments or result."""
_EXPIRED_AT_A_TIME = 1_000
"""How many expired records are checked in one step, since this blocks an event loop."""


class MemoryStore:
    """Stores records in this process; they are lost when it ends. *clock* is for tests.

    It has no watch, so `add` and `get` remove the expired records.
    """

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
        """The ids of each tool's waiting tasks."""
        self._unfinished: dict[str, int] = {}
        """How many unfinished tasks each owner has."""
        self._by_owner: dict[str, dict[str, None]] = {}
        """The ids of each owner's tasks, in order of creation."""
        self._keys: dict[tuple[str, str], str] = {}
        self._expiries: list[tuple[float, str]] = []
        """A heap with one entry per expiring task: when to check it, and its id."""
        self._bytes = 0

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        self.remove_expired()
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

    def has_queued(self, tool: str, count: int) -> bool:
        return len(self._queues.get(tool, ())) >= count

    def has_unfinished(self, owner: str, count: int) -> bool:
        return self._unfinished.get(owner, 0) >= count

    def get(self, id: str) -> TaskRecord | None:
        self.remove_expired()
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
            if after is not None and after not in ids:  # `in` advances the iterator past it.
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
        """Do nothing: memory can always be written."""

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
        # A later expiry is detected when the earlier heap entry is due.
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
