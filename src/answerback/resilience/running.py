"""Runs an operation under a policy: as a coroutine, or in the caller's thread."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from ..calls.runners import ON_LOOP, run_at_once
from ..core.stopped_clocks import RUNNING
from .policy_run import PolicyRun
from .service_failure import read_failure

if TYPE_CHECKING:
    from .limit import Ask, PendingCount

Operation = Callable[[float | None], Any]
"""Makes one attempt within the given seconds; returns a value or a coroutine."""


async def run_async(run: PolicyRun, operation: Operation) -> Any:
    """Return the value of *operation*, which is retried as the policy says."""
    return await _run(run, operation, ask_on_loop)


def run_sync(run: PolicyRun, operation: Operation) -> Any:
    """Do the same as `run_async` without an event loop: the thread waits.

    A function that returns a coroutine, as a lambda may, has not run yet: the result is then a
    coroutine that runs it with `run_async`.
    """
    return run_at_once(_run(run, operation, _ask_in_thread))


async def _run(run: PolicyRun, operation: Operation, ask: Ask) -> Any:
    await run.begin(ask)
    # Questions to the user pause the call's clock; only a retry has one.
    token = None if run.watch is None else RUNNING.set((*RUNNING.get(), run.watch))
    try:
        while True:
            run.attempts += 1
            try:
                value = operation(run.seconds_left())
                if isinstance(value, CoroutineType):
                    if ask is _ask_in_thread:
                        run.undo()
                        return run_async(run, _beginning_with(value, operation))
                    value = await value
            except BaseException as exc:
                wait = run.wait_after(exc, read_failure(exc))
                if wait is None:
                    raise
            else:
                failure = run.failure_in(value)
                if failure is None:
                    run.succeeded()
                    return value
                wait = run.wait_after(None, failure)
                if wait is None:
                    return value
            await _pause(run, wait, in_thread=ask is _ask_in_thread)
            run.check_cancelled()
    finally:
        if token is not None:
            RUNNING.reset(token)
        run.end()


async def ask_on_loop(pending: PendingCount, seconds: float | None = None) -> float:
    """Wait on the event loop until the shared database has counted a call."""
    await ON_LOOP
    import asyncio

    try:
        return await asyncio.wait_for(asyncio.wrap_future(pending.answer), seconds)
    except TimeoutError:
        return pending.count_alone()


async def _ask_in_thread(pending: PendingCount, seconds: float | None) -> float:
    try:
        return pending.answer.result(seconds)
    except TimeoutError:
        return pending.count_alone()


def _beginning_with(first: object, operation: Operation) -> Operation:
    """Return the operation, whose first attempt has already returned *first*."""
    made = [first]
    return lambda left: made.pop() if made else operation(left)


async def _pause(run: PolicyRun, seconds: float, *, in_thread: bool) -> None:
    if in_thread:
        run.clock.wait(seconds)
    else:
        await ON_LOOP
        await run.clock.sleep(seconds)
