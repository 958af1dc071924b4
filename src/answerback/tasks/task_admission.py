"""Whether there is room for one more task: in the store, in its tool's queue, and for its owner."""

from __future__ import annotations

from typing import Protocol

from ..core.limits import TaskLimits
from ..errors import RateLimited, Unavailable
from .task_record import TaskRecord

_RETRY_AFTER = 5


class Kept(Protocol):
    """Counts the tasks that a store keeps."""

    def bytes_with(self, task: TaskRecord) -> int:
        """Return the size of all records, and of this one."""

    def waits(self, tool: str, count: int) -> bool:
        """Return whether at least so many tasks of a tool wait for a worker."""

    def has_unfinished(self, owner: str, count: int) -> bool:
        """Return whether an owner has at least so many unfinished tasks."""


def check_room(task: TaskRecord, kept: Kept, limits: TaskLimits) -> None:
    """Raise Unavailable or RateLimited if there is no room for a new task."""
    if kept.bytes_with(task) > limits.total_bytes:
        raise Unavailable(
            f"The tasks that are kept take too much room, more than {limits.total_bytes} bytes",
            retryable=True,
            retry_after=_RETRY_AFTER,
        )
    if task.is_waiting and kept.waits(task.tool, limits.queue):
        raise Unavailable(
            f"Too many tasks of this tool wait, more than {limits.queue}",
            retryable=True,
            retry_after=_RETRY_AFTER,
        )
    # Anonymous callers own nothing together.
    if task.owner and kept.has_unfinished(task.owner, limits.per_owner):
        raise RateLimited(
            f"You have too many unfinished tasks, more than {limits.per_owner}",
            retryable=True,
            retry_after=_RETRY_AFTER,
        )
