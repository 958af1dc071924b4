"""Work that runs beside the caller, in an asyncio task that nobody awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def spawn(work: Coroutine[Any, Any, T], tasks: set[asyncio.Task[T]]) -> asyncio.Task[T]:
    """Run *work* in a task, which stays in *tasks* until it ends.

    An event loop has only weak references to its tasks: without another reference, a task may
    vanish before it ends.
    """
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task
