"""Runs a tool's function: in a thread, on the event loop, or in place; and its timeout.

There are two runners. `run_in` is for wires that serve many calls: they have an event loop, and
plain functions run in threads. `run_in_place` is for a process that makes one call, as CGI and
`call` do: a plain function runs in the calling thread, and there is no event loop at first, because
importing asyncio would double the time that such a process takes. Code that needs an event loop,
such as an async tool or a timeout, awaits `ON_LOOP`. `run_without_loop` then starts a loop, which
continues the call from that point.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from functools import cache, partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from ..core.author_errors import Unawaited
from ..core.event_loop import running_loop
from ..core.log import logger
from ..errors import CHECK_FIRST, TimedOut, ToolError
from ..tools.tool import Tool
from ..types.json_text import MAX_SLOW_NUMBERS, slow_numbers
from .call import Call

if TYPE_CHECKING:
    from ..tools.requires import Gate
    from .loop_thread import LoopThread
    from .thread_pool import ThreadPool

T = TypeVar("T")
_COROUTINES: Any = (CoroutineType, Unawaited)
"""A plain function's results of these types are awaited; `ctx.elicit` returns the second."""
Runnable: TypeAlias = "Tool | Gate"
"""A function with its time-out, and whether it is async."""
Runner: TypeAlias = Callable[[Runnable, dict[str, Any], Call], Any]
"""Runs a tool's function; returns its value, or a coroutine that the pipeline awaits."""

LargeDecoder: TypeAlias = Callable[[Tool, bytes, int], Awaitable[dict[str, Any]]]
"""Decodes arguments of more than LARGE bytes, like `decode_arguments`."""

ArgumentsDecoder: TypeAlias = Callable[[Tool, bytes], Awaitable[dict[str, Any]]]
_CLOSING_SECONDS = 1.0
"""How many seconds the tasks left behind by a call have to finish."""
NO_LOOP = "something waited, and there is no loop to wait on; import asyncio at the top"


def decode_arguments(tool: Tool, raw: bytes, max_values: int) -> dict[str, Any]:
    """Return the typed arguments; for pydantic types, refuse more than *max_values* values."""
    if slow_numbers(raw) > MAX_SLOW_NUMBERS:
        raise ToolError(
            f"The arguments have more than {MAX_SLOW_NUMBERS} numbers with large exponents",
            code="TOO_LARGE",
            hint="send fewer values in one call",
        )
    if len(raw) > max_values and tool.arguments.has_too_many_values(raw, max_values):
        raise ToolError(
            f"The arguments have more than {max_values} values",
            code="TOO_LARGE",
            hint="send fewer values in one call",
        )
    return tool.arguments.decode(raw)


async def decode_in_place(tool: Tool, raw: bytes, max_values: int) -> dict[str, Any]:
    """Decode the arguments in a one-call process."""
    return decode_arguments(tool, raw, max_values)


WaitFor: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to completion for a plain function, whose thread waits."""


class Execution(msgspec.Struct, frozen=True):
    """How a wire runs functions."""

    run: Runner
    wait_for: WaitFor
    ours: ThreadPool | None = None
    """The threads for our own blocking functions; None in a one-call process."""
    close: Callable[[], None] = lambda: None
    """Ends the threads of the authors' functions."""
    makes_one_call: bool = False
    """Whether this is a one-call process, with the lifespan around the call."""

    @property
    def decode_large(self) -> LargeDecoder:
        # Decoding two large requests at once would make every other call wait longer.
        ours = self.ours
        return decode_in_place if ours is None else partial(ours.one_at_a_time, decode_arguments)


def execution_in(pool: ThreadPool, ours: ThreadPool | None) -> Execution:
    """Return the execution for a wire that serves many calls.

    Authors' functions run in *pool*, and nothing else does: they may hold all its threads.
    """
    return Execution(run_in(pool), _waiting(lambda: pool), ours, pool.close)


def execution_in_place() -> Execution:
    """Return the execution for a one-call process."""

    @cache
    def pool() -> ThreadPool:
        # Imported here, because most calls need no thread.
        from .thread_pool import ThreadPool

        return ThreadPool()

    return Execution(run_in_place(pool), _waiting(pool), makes_one_call=True)


def run_in(pool: ThreadPool) -> Runner:
    """Return a runner that runs a plain `def` in a thread of *pool*, because most of them block."""

    def run(tool: Runnable, kwargs: dict[str, Any], call: Call) -> object:
        running: object
        if tool.is_async:
            running = on_loop(tool.fn(**kwargs))
        elif tool.inline:
            running = _awaitable(tool.fn(**kwargs))
        else:
            running = _run_in_thread(pool, tool, kwargs)
        if tool.timeout is None or not isinstance(running, CoroutineType):
            return running
        return with_timeout(tool, running)

    return run


def run_in_place(pool: Callable[[], ThreadPool]) -> Runner:
    """Return a runner that runs a plain `def` in place, unless a loop has already been needed.

    A function with a time-out runs in a thread of *pool*.
    """

    def run(tool: Runnable, kwargs: dict[str, Any], call: Call) -> object:
        if tool.is_async or tool.timeout is not None or running_loop() is not None:
            return run_in(pool())(tool, kwargs, call)
        return _awaitable(tool.fn(**kwargs))

    return run


async def on_loop(steps: Coroutine[Any, Any, Any]) -> Any:
    """Await a tool's coroutine on an event loop.

    The tool may cancel itself; only cancelling the call ends more than the tool.
    """
    await ON_LOOP
    try:
        return await steps
    except BaseException as exc:
        import asyncio

        if not isinstance(exc, asyncio.CancelledError) or _is_being_cancelled():
            raise
        raise RuntimeError("the tool cancelled itself") from exc


def _is_being_cancelled() -> bool:
    import asyncio

    # A separate function: the task keeps the exception, whose traceback keeps its frames.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _awaitable(value: object) -> object:
    """Prepare a returned coroutine: many decorators make a plain function return one."""
    return on_loop(value) if isinstance(value, _COROUTINES) else value


async def _run_in_thread(pool: ThreadPool, tool: Runnable, kwargs: dict[str, Any]) -> Any:
    loop = running_loop()
    if loop is None:
        # A one-call process has no loop yet; it takes a thread for a function with a timeout.
        await ON_LOOP
        loop = running_loop()
        assert loop is not None
    running = pool.run(tool.fn, kwargs, loop)
    try:
        value = await running
    except BaseException:
        if running.cancelled():
            pool.make_room()
        raise
    finally:
        del running  # Its exception refers to this frame.
    return await on_loop(value) if isinstance(value, _COROUTINES) else value


def _waiting(pool: Callable[[], ThreadPool]) -> WaitFor:
    """Let a function in a thread wait for a coroutine on its call's loop."""

    @cache
    def own_loop() -> LoopThread:
        from .loop_thread import LoopThread

        return LoopThread("answerback-loop")

    def wait_for(steps: Coroutine[Any, Any, Any]) -> Any:
        loop = pool().current_loop()
        if loop is None:
            # A one-call process runs the function in place, without a loop.
            return own_loop().run(steps)
        import asyncio

        return asyncio.run_coroutine_threadsafe(steps, loop).result()

    return wait_for


async def with_timeout(tool: Runnable, steps: Coroutine[Any, Any, Any]) -> Any:
    """Await *steps* for at most the tool's time-out; raises TimedOut.

    The clock stops while the user is being asked.
    """
    await ON_LOOP
    from ..core.clocks import Deadline

    try:
        async with Deadline(tool.timeout).limit() as timeout:
            return await steps
    except Exception as exc:
        # Database drivers raise their own exceptions when a statement is cancelled.
        if timeout.expired() and not isinstance(exc, ToolError):
            raise timed_out(tool) from exc
        raise  # The tool itself raised it.


def timed_out(tool: Runnable) -> TimedOut:
    """Return the error for a call whose function took too long."""
    if not tool.is_async:
        message = "%s %r took longer than %g seconds; its thread is still running, without a caller"
        logger().warning(message, tool.noun, tool.name, tool.timeout)
    # A gate, a resource or a prompt only reads.
    may_repeat = (
        not isinstance(tool, Tool)
        or tool.noun != "tool"
        or tool.settings.idempotent
        or tool.settings.read_only
    )
    error = TimedOut(
        f"The {tool.noun} took longer than {tool.timeout:g} seconds",
        retryable=None if may_repeat else False,
        hint="try again later, or ask for less" if may_repeat else CHECK_FIRST,
    )
    error.thread_goes_on = not tool.is_async
    return error


class OnLoop:
    """Awaited where an event loop is needed; does nothing if one is already running."""

    def __await__(self) -> Generator[OnLoop, None, None]:
        if running_loop() is None:
            yield self


ON_LOOP = OnLoop()


def with_loop(steps: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Return a coroutine that needs an event loop, wrapped to start one if none is running."""
    return steps if running_loop() is not None else _after_start(steps)


async def _after_start(steps: Coroutine[Any, Any, T]) -> T:
    await ON_LOOP
    return await steps


def run_at_once(steps: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits."""
    try:
        steps.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    steps.close()
    raise RuntimeError(NO_LOOP)


def run_without_loop(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion; an event loop is started only if the coroutine needs one."""
    # A loop needs its own context, and the coroutine resets variables where it set them.
    context = copy_context()
    try:
        wanted = context.run(steps.send, None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    if wanted is not ON_LOOP:
        steps.close()
        raise RuntimeError(NO_LOOP)
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
        if not left:  # Closing the loop would wait for them indefinitely.
            runner.close()
