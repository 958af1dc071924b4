"""TaskStore: where task records are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol, TypeAlias

from ..core.limits import TaskLimits
from .task_record import TaskRecord

Change: TypeAlias = Callable[[TaskRecord, float], "TaskRecord | None"]
"""A function of `transitions` with its arguments; it gets the record and the store's time.

None leaves the record as it is."""


class Claim(NamedTuple):
    """A worker's claim on a task; `TaskRecord` explains the members."""

    id: str
    worker: str
    fence: int
    lease: float


class TaskChanges(Protocol):
    """Waits for other processes' changes, in one thread."""

    def wait(self, seconds: float, *, is_urgent: bool) -> Collection[str] | None:
        """Wait until another process changes a record, at most *seconds*; return the ids.

        None means that any record may have changed. It may return early without a change. Where
        nothing reports a change, it looks more often if *is_urgent*. Raises Unavailable.
        """

    def wake(self) -> None:
        """End a wait that is not urgent, or the next one; any thread may call this."""


class TaskStore(Protocol):
    """Any thread may use a store. Each method is one atomic step, even across processes.

    All times in records are the store's: the clocks of the processes that share it may differ.
    A store that cannot be read or written raises Unavailable, and Uncertain if the write may have
    landed; what it has returned stays stored.
    """

    @property
    def blocks(self) -> bool:
        """Whether methods may take long, so that an event loop calls them in a thread."""

    def now(self) -> float:
        """Return the store's time, in seconds since 1970."""

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        """Keep a new task; its times are counted from the store's.

        If its idempotency key is known, return the task with that key.
        Raises KeyReused if that task is another call, and Unavailable or RateLimited above a limit.
        """

    def get(self, id: str) -> TaskRecord | None: ...

    def change(self, id: str, change: Change) -> TaskRecord | None:
        """Change a record; return the new record, or None if nothing changed."""

    def claim(
        self, worker: str, lease: float, count: int, tools: Collection[str]
    ) -> list[TaskRecord]:
        """Claim up to *count* waiting tasks for *lease* seconds, oldest first.

        A store that apps or their versions share claims only tasks of *tools*.
        """

    def renew(self, workers: Collection[str], lease: float) -> None:
        """Extend all claims of these workers: they last *lease* seconds from now."""

    def claims(self, workers: Collection[str] | None = None) -> list[Claim]:
        """Return the claims of these workers; of all workers if None."""

    def page(
        self, owner: str | None, after: str | None, count: int, *, newest_first: bool = False
    ) -> list[TaskRecord]:
        """Return tasks in order of creation, or the other way; *owner* None lists all owners'.

        *after* is the id of the previous page's last task.
        """

    def remove(self, id: str) -> None:
        """Remove a record."""

    def remove_expired(self) -> int:
        """Remove expired records; return how many. If there are many, some stay.

        A running or waiting task stays: it was promised to a client.
        """

    @property
    def is_failing(self) -> bool:
        """Whether the store could not be read or written the last time."""

    def try_to_write(self) -> None:
        """Find out whether the store can be written again; `is_failing` says so."""

    def changes(self) -> TaskChanges | None:
        """Return what waits for other processes' changes; None if there can be none."""

    def close(self) -> None: ...
