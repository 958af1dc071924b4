"""Runs a tool's function where there is no event loop; and time-outs for every runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import CoroutineType
from typing import Any, TypeAlias

from ..errors import CHECK_FIRST, TimedOut, ToolError, Unavailable
from ..tools.tool import Tool
from .call import Call

Runner: TypeAlias = Callable[[Tool, dict[str, Any], Call], Any]
"""Runs a tool's function; returns its value, or a coroutine that the pipeline awaits."""

LargeDecoder: TypeAlias = Callable[[Tool, bytes, int], Awaitable[dict[str, Any]]]
"""Decodes arguments of more than LARGE bytes as `decode_arguments` does."""

ArgumentsDecoder: TypeAlias = Callable[[Tool, bytes], Awaitable[dict[str, Any]]]


def decode_arguments(tool: Tool, raw: bytes, max_values: int) -> dict[str, Any]:
    """The typed arguments; refuses more than *max_values* values for types of pydantic."""
    if len(raw) > max_values and tool.arguments.has_too_many_values(raw, max_values):
        raise ToolError(
            f"The arguments have more than {max_values} values",
            code="TOO_LARGE",
            hint="send fewer values in one call",
        )
    return tool.arguments.decode(raw)


async def decode_in_place(tool: Tool, raw: bytes, max_values: int) -> dict[str, Any]:
    """For a wire without an event loop."""
    return decode_arguments(tool, raw, max_values)


AsyncRunner: TypeAlias = Callable[[Coroutine[Any, Any, Any], Call], Any]
"""Runs a coroutine to its end from code that is not async."""


def run_in_place(run_async: AsyncRunner) -> Runner:
    """For a wire without an event loop. It never waits, so `run_without_loop` can step it."""

    def run(tool: Tool, kwargs: dict[str, Any], call: Call) -> Any:
        if tool.timeout is not None:
            return _run_in_spare_thread(tool, kwargs, call, run_async)
        value = tool.fn(**kwargs)
        return run_async(value, call) if isinstance(value, CoroutineType) else value

    return run


def run_in_new_loop(steps: Coroutine[Any, Any, Any], call: Call) -> Any:
    """Run an `async` tool in an event loop of its own."""
    # Imported here, because only an async tool needs asyncio and importing it is slow.
    import asyncio

    return asyncio.run(steps)


async def with_timeout(tool: Tool, steps: Coroutine[Any, Any, Any]) -> Any:
    """Await *steps* for as long as the tool may take; raises TimedOut.

    The clock stops while the user is asked.
    """
    import asyncio

    from ..stopped_clocks import stoppable

    try:
        async with asyncio.timeout(tool.timeout) as clock:
            with stoppable(clock):
                return await steps
    except TimeoutError:
        if not clock.expired():
            raise  # The tool itself raised it.
        raise timed_out(tool) from None


def _run_in_spare_thread(
    tool: Tool, kwargs: dict[str, Any], call: Call, run_async: AsyncRunner
) -> Any:
    """Run a tool that has a time-out."""
    if tool.is_async:
        return run_async(with_timeout(tool, tool.fn(**kwargs)), call)
    value = call_in_spare_thread(tool, partial(tool.fn, **kwargs), tool.timeout)
    return run_async(with_timeout(tool, value), call) if isinstance(value, CoroutineType) else value


def call_in_spare_thread(tool: Tool, function: Callable[[], Any], seconds: float | None) -> Any:
    """Call a `def` that has a time-out; one that takes longer is left behind in its thread."""
    import threading
    from contextvars import copy_context

    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            outcome.append((function(), None))
        except BaseException as exc:  # noqa: BLE001 -- raised again in the thread that waits
            outcome.append((None, exc))

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(None if seconds is None else max(seconds, 0.0))
    if not outcome:
        raise timed_out(tool)
    value, failure = outcome[0]
    if failure is not None:
        raise failure
    return value


def timed_out(tool: Tool) -> TimedOut:
    """The refusal of a call whose function took too long."""
    if not tool.is_async:
        import logging

        message = "%s %r took longer than %g seconds; its thread goes on without a caller"
        logging.getLogger("answerback").warning(message, tool.noun, tool.name, tool.timeout)
    # A gate, a resource or a prompt only reads.
    may_repeat = tool.noun != "tool" or tool.settings.idempotent or tool.settings.read_only
    error = TimedOut(
        f"The {tool.noun} took longer than {tool.timeout:g} seconds",
        retryable=None if may_repeat else False,
        hint="try again later, or ask for less" if may_repeat else CHECK_FIRST,
    )
    error.thread_goes_on = not tool.is_async
    return error


def all_busy(threads: int, seconds: float) -> Unavailable:
    """The refusal of a call that waited for a thread in vain."""
    message = f"All {threads} threads are busy, and none became free within {seconds:g} seconds"
    return Unavailable(message, retryable=True, hint="try again later")
