"""How a tool's function is run: beside a loop, or where there is none."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias

from .tool import Tool

if TYPE_CHECKING:
    from .threads import Pool

Runner: TypeAlias = Callable[[Tool, dict[str, Any]], Coroutine[Any, Any, Any]]


def on_loop(pool: Pool) -> Runner:
    """For a wire with a loop: a plain `def` goes to a thread, because real ones block."""

    async def run(tool: Tool, kwargs: dict[str, Any]) -> Any:
        if tool.is_async:
            return await tool.fn(**kwargs)
        value = tool.fn(**kwargs) if tool.inline else await pool.run(tool.fn, kwargs)
        # A plain function may hand on what an async one gave it, as many decorators do.
        return await value if isinstance(value, CoroutineType) else value

    return run


def in_place(run_async: Callable[[Coroutine[Any, Any, Any]], Any]) -> Runner:
    """For a wire without a loop: never waits on one, so the path can be stepped by hand."""

    async def run(tool: Tool, kwargs: dict[str, Any]) -> Any:
        value = tool.fn(**kwargs)
        return run_async(value) if isinstance(value, CoroutineType) else value

    return run


def on_a_loop_of_its_own(awaited: Coroutine[Any, Any, Any]) -> Any:
    """Only an `async` tool brings asyncio in: importing it costs more than a call."""
    import asyncio

    return asyncio.run(awaited)
