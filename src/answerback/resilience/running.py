"""Runs an operation under a policy: as a coroutine, or in the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any

from ..calls.runners import ON_LOOP, run_at_once
from ..core.stopped_clocks import RUNNING
from .asking import MustAsk
from .policy_run import PolicyRun
from .service_failure import read_failure

Operation = Callable[[float | None], Any]
"""Makes one attempt within the given seconds; returns a value or a coroutine."""
_Wait = Callable[[PolicyRun, float], Coroutine[Any, Any, None]]


async def run_async(run: PolicyRun, operation: Operation) -> Any:
    """Return the value of *operation*, which is retried as the policy says."""
    while True:
        try:
            return await _run(run, operation, _wait_on_loop)
        except MustAsk as asked:
            await answered(asked)


def run_sync(run: PolicyRun, operation: Operation) -> Any:
    """Do the same as `run_async` without an event loop: the thread waits.

    A function that returns a coroutine, as a lambda may, has not run yet: the result is then a
    coroutine that runs it with `run_async`.
    """
    while True:
        try:
            return run_at_once(_run(run, operation, _wait_in_thread))
        except MustAsk as asked:
            asked.answer.result()


async def _run(run: PolicyRun, operation: Operation, wait_for: _Wait) -> Any:
    run.begin()
    # Questions to the user pause the call's clock; only a retry has one.
    token = None if run.watch is None else RUNNING.set((*RUNNING.get(), run.watch))
    try:
        while True:
            run.attempts += 1
            try:
                value = operation(run.seconds_left())
                if isinstance(value, CoroutineType):
                    if wait_for is _wait_in_thread:
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
            await wait_for(run, wait)
            run.check_cancelled()
    finally:
        if token is not None:
            RUNNING.reset(token)
        run.end()


async def answered(asked: MustAsk) -> None:
    """Wait on the event loop until the shared database has answered."""
    await ON_LOOP
    import asyncio

    await asyncio.wrap_future(asked.answer)


def _beginning_with(first: object, operation: Operation) -> Operation:
    """Return the operation, whose first attempt has already returned *first*."""
    made = [first]
    return lambda left: made.pop() if made else operation(left)


async def _wait_on_loop(run: PolicyRun, seconds: float) -> None:
    await ON_LOOP
    await run.clock.sleep(seconds)


async def _wait_in_thread(run: PolicyRun, seconds: float) -> None:
    run.clock.wait(seconds)
