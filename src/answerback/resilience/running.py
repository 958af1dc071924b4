"""Runs an operation under a policy: as a coroutine, or in the thread of the caller."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Token
from types import CoroutineType
from typing import Any

from ..calls.runners import ON_LOOP, run_at_once
from ..core.stopped_clocks import RUNNING, StoppableClock
from .service_failure import read_failure
from .trial import Trial

Operation = Callable[[float | None], Any]
"""Makes one attempt within the given seconds; returns its value or a coroutine."""
_Wait = Callable[[Trial, float], Coroutine[Any, Any, None]]


async def run_async(trial: Trial, operation: Operation) -> Any:
    """The value of *operation*, which is tried again as the policy says."""
    return await _run(trial, operation, _wait_on_loop)


def run_sync(trial: Trial, operation: Operation) -> Any:
    """As `run_async`, without an event loop: the thread waits.

    A function that returns a coroutine, as a lambda may, has not run yet: the result is a coroutine
    that runs it by `run_async`.
    """
    return run_at_once(_run(trial, operation, _wait_in_thread))


async def _run(trial: Trial, operation: Operation, wait_for: _Wait) -> Any:
    trial.begin()
    token = _put_clock(trial)
    try:
        while True:
            trial.attempts += 1
            try:
                value = operation(trial.seconds_left())
                if isinstance(value, CoroutineType):
                    if wait_for is _wait_in_thread:
                        trial.undo()
                        return run_async(trial, _beginning_with(value, operation))
                    value = await value
            except BaseException as exc:
                wait = trial.wait_after(exc, read_failure(exc))
                if wait is None:
                    raise
            else:
                failure = trial.failure_in(value)
                if failure is None:
                    trial.succeeded()
                    return value
                wait = trial.wait_after(None, failure)
                if wait is None:
                    return value
            await wait_for(trial, wait)
            trial.check_cancelled()
    finally:
        _take_clock(token)
        trial.end()


def _beginning_with(first: object, operation: Operation) -> Operation:
    """The operation, whose first attempt was made already and returned *first*."""
    made = [first]
    return lambda left: made.pop() if made else operation(left)


async def _wait_on_loop(trial: Trial, seconds: float) -> None:
    await ON_LOOP
    await trial.clock.sleep(seconds)


async def _wait_in_thread(trial: Trial, seconds: float) -> None:
    trial.clock.wait(seconds)


def _put_clock(trial: Trial) -> Token[tuple[StoppableClock, ...]] | None:
    """Let questions to the user stop the clock of the call; only a retry has one."""
    if trial.watch is None:
        return None
    return RUNNING.set((*RUNNING.get(), trial.watch))


def _take_clock(token: Token[tuple[StoppableClock, ...]] | None) -> None:
    if token is not None:
        RUNNING.reset(token)
