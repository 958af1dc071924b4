"""TaskStore: where task records are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol, TypeAlias

from ..core.limits import TaskLimits
from .task_record import TaskRecord

Change: TypeAlias = Callable[[TaskRecord], "TaskRecord | None"]
"""A function of `transitions` with its arguments; None leaves the record as it is."""


class Claim(NamedTuple):
    """A worker's claim on a task; `TaskRecord` explains the members."""

    id: str
    worker: str
    fence: int
    lease: float


class TaskStore(Protocol):
    """Any thread may use a store. Each method is one atomic step, even across processes.

    A store that cannot be read or written raises Unavailable; what it has returned stays stored.
    """

    @property
    def blocks(self) -> bool:
        """Whether methods may take long, so that an event loop calls them in a thread."""

    @property
    def notice_path(self) -> str:
        """A file written on each change; empty if no other process makes changes."""

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        """Keep a new task. If its idempotency key is known, return the task with that key.

        Raises KeyReused if that task is another call, and Unavailable or RateLimited above a limit.
        """

    def get(self, id: str) -> TaskRecord | None: ...

    def change(self, id: str, change: Change) -> TaskRecord | None:
        """Change a record; return the new record, or None if nothing changed."""

    def claim(self, worker: str, now: float, lease: float, count: int) -> list[TaskRecord]:
        """Claim up to *count* waiting tasks, oldest first."""

    def renew(self, workers: Collection[str], until: float) -> None:
        """Extend all claims of these workers."""

    def claims(self) -> list[Claim]:
        """Return all workers' claims."""

    def page(self, owner: str | None, after: str | None, count: int) -> list[TaskRecord]:
        """Return tasks in order of creation; *owner* None lists those of all owners.

        *after* is the id of the previous page's last task.
        """

    def remove_expired(self, now: float) -> int:
        """Remove expired records; return how many. If there are many, some stay.

        A running or waiting task stays: it was promised to a client.
        """

    @property
    def is_failing(self) -> bool:
        """Whether the store could not be read or written the last time."""

    def try_to_write(self) -> None:
        """Find out whether the store can be written again; `is_failing` says so."""

    def version(self) -> int:
        """Return a number that changes whenever another process may have changed a record."""

    def close(self) -> None: ...
