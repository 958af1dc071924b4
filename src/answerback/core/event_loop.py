"""The running event loop, without importing asyncio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return this thread's running event loop."""
    found = sys.modules.get("asyncio.events")
    # Another thread may be in the middle of importing it.
    get: Callable[[], Any] | None = getattr(found, "_get_running_loop", None)
    return None if get is None else get()


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
