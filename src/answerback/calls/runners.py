"""How a tool's function is run: beside a loop, or where there is none."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import TimedOut
from ..tools.tool import Tool

if TYPE_CHECKING:
    from .thread_pool import Pool

Runner: TypeAlias = Callable[[Tool, dict[str, Any]], Any]
"""Gives what the tool gives back, or a coroutine of it."""


def on_loop(pool: Pool) -> Runner:
    """For a wire with a loop: a plain `def` goes to a thread, because real ones block."""

    def run(tool: Tool, kwargs: dict[str, Any]) -> Any:
        if tool.is_async:
            running = _its_own_cancellation(tool.fn(**kwargs))
        elif tool.inline:
            running = tool.fn(**kwargs)
        else:
            running = _in_thread(pool, tool, kwargs)
        if tool.timeout is None or not isinstance(running, CoroutineType):
            return running
        return _in_time(tool, running)

    return run


async def _in_thread(pool: Pool, tool: Tool, kwargs: dict[str, Any]) -> Any:
    running = pool.run(tool.fn, kwargs)
    try:
        value = await running
    except BaseException:
        if running.cancelled():
            pool.make_room()
        raise
    # A plain function may hand on what an async one gave it, as many decorators do.
    return await value if isinstance(value, CoroutineType) else value


async def _its_own_cancellation(running: Coroutine[Any, Any, Any]) -> Any:
    """A tool may give up by itself; only if the caller did too does that end more than the call."""
    import asyncio

    try:
        return await running
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("the tool cancelled itself") from exc


async def _in_time(tool: Tool, running: Coroutine[Any, Any, Any]) -> Any:
    import asyncio

    try:
        async with asyncio.timeout(tool.timeout) as clock:
            return await running
    except TimeoutError:
        if not clock.expired():
            raise  # It is the tool's own.
        raise _too_long(tool) from None


def _too_long(tool: Tool) -> TimedOut:
    if not tool.is_async:
        import logging

        told = "tool %r took longer than %g seconds; its thread goes on without a caller"
        logging.getLogger("answerback").warning(told, tool.name, tool.timeout)
    return TimedOut(f"The tool took longer than {tool.timeout:g} seconds")


def in_place(run_async: Callable[[Coroutine[Any, Any, Any]], Any]) -> Runner:
    """For a wire without a loop: never waits on one, so the path can be stepped by hand."""

    def run(tool: Tool, kwargs: dict[str, Any]) -> Any:
        if tool.timeout is not None:
            return _beside(tool, kwargs, run_async)
        value = tool.fn(**kwargs)
        return run_async(value) if isinstance(value, CoroutineType) else value

    return run


def _beside(
    tool: Tool, kwargs: dict[str, Any], run_async: Callable[[Coroutine[Any, Any, Any]], Any]
) -> Any:
    """Run it in a thread that can be left behind: nothing else can be done about a slow `def`."""
    import threading
    from contextvars import copy_context

    if tool.is_async:
        return run_async(_in_time(tool, tool.fn(**kwargs)))
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((tool.fn(**kwargs), None))
        except BaseException as exc:  # noqa: BLE001 -- it is raised again where it is waited for
            outcome.append((None, exc))

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(tool.timeout)
    if not outcome:
        raise _too_long(tool)
    value, failure = outcome[0]
    if failure is not None:
        raise failure
    return run_async(_in_time(tool, value)) if isinstance(value, CoroutineType) else value


def on_a_loop_of_its_own(awaited: Coroutine[Any, Any, Any]) -> Any:
    """Only an `async` tool brings asyncio in: importing it costs more than a call."""
    import asyncio

    return asyncio.run(awaited)
