"""Runs coroutines where no event loop runs: one plain call, and the calls over stdio.

Such a coroutine is stepped by hand, so that a plain call does not wait for the import of asyncio.
Code that does need an event loop, such as an async tool or a time-out, awaits `ON_LOOP` first.
Whoever steps the coroutine then lets an event loop go on with it, from that point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

    from .thread_pool import ThreadPool

T = TypeVar("T")
_CLOSING_SECONDS = 1.0
"""The time that the tasks which a call left behind get to end."""
NO_LOOP = "something waited, and there is no loop to wait on; import asyncio at the top"


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread."""
    found = sys.modules.get("asyncio.events")
    # Another thread may be in the middle of importing it.
    get: Callable[[], Any] | None = getattr(found, "_get_running_loop", None)
    return None if get is None else get()


class OnLoop:
    """Awaited where an event loop is needed; on a loop it does nothing."""

    def __await__(self) -> Generator[OnLoop, None, None]:
        if running_loop() is None:
            yield self


ON_LOOP = OnLoop()


class InThread:
    """The value of a function that a thread of *pool* calls, for a coroutine without a loop."""

    def __init__(
        self, pool: ThreadPool, function: Callable[..., Any], kwargs: dict[str, Any]
    ) -> None:
        self.pool = pool
        self.function = function
        self.kwargs = kwargs

    def __await__(self) -> Generator[InThread, Any, Any]:
        return (yield self)


def run_at_once(steps: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        steps.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    steps.close()
    raise RuntimeError(NO_LOOP)


def run_without_loop(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; an event loop is started only if the coroutine needs one."""
    # A loop needs a context of its own, and the coroutine resets variables where it set them.
    context = copy_context()
    try:
        wanted = context.run(steps.send, None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    if wanted is ON_LOOP:
        return _run_on_new_loop(steps, context)
    steps.close()
    raise RuntimeError(NO_LOOP)


def _run_on_new_loop(steps: Coroutine[Any, Any, T], context: Context) -> T:
    """Go on with a coroutine on an event loop of its own."""
    import asyncio

    runner = asyncio.Runner()
    try:
        return runner.run(steps, context=context)
    finally:
        loop = runner.get_loop()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            _, left = loop.run_until_complete(asyncio.wait(left, timeout=_CLOSING_SECONDS))
        if not left:  # Closing would wait for them without a limit.
            runner.close()
