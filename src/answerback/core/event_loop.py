"""Finds the running event loop without importing asyncio, and keeps blocking code off it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return this thread's running event loop."""
    found = sys.modules.get("asyncio.events")
    # Another thread may be in the middle of importing it.
    get: Callable[[], Any] | None = getattr(found, "_get_running_loop", None)
    return None if get is None else get()


class OffLoop(Protocol):
    """Calls a function that may block, such as a store's, without blocking an event loop.

    The function runs to its end, even if the caller is cancelled.
    """

    async def __call__(self, function: Callable[..., T], *args: object) -> T: ...


async def call_in_place(function: Callable[..., T], *args: object) -> T:
    """Call a function that does not block, or that nobody else waits for."""
    return function(*args)


def spawn(work: Coroutine[Any, Any, T], tasks: set[asyncio.Task[T]]) -> asyncio.Task[T]:
    """Run *work* in a task, which stays in *tasks* until it ends.

    An event loop keeps only weak references to its tasks, so a task without any other reference
    may be garbage-collected before it ends.
    """
    loop = running_loop()
    if loop is None:
        raise RuntimeError("there is no running event loop")
    task = loop.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task
