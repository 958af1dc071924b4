"""Runs an operation under a policy: on an event loop, or in the thread of the caller."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from ..stopped_clocks import RUNNING
from .service_failure import read_failure
from .trial import Trial

Operation = Callable[[float | None], Any]
"""Makes one attempt within the given seconds; returns its value or a coroutine."""


def is_on_loop() -> bool:
    """Whether an event loop runs in this thread, so that a wait must not block it."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


async def run_async(trial: Trial, operation: Operation) -> Any:
    """The value of *operation*, which is tried again as the policy says."""
    trial.begin()
    token = _put_clock(trial)
    try:
        while True:
            trial.attempts += 1
            try:
                value = operation(trial.seconds_left())
                if isinstance(value, CoroutineType):
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
            await trial.clock.sleep(wait)
            trial.check_cancelled()
    finally:
        _take_clock(token)
        trial.end()


def run_sync(trial: Trial, operation: Operation) -> Any:
    """As `run_async`, without an event loop: the thread waits.

    A function that returns a coroutine, as a lambda may, has not run yet: the result is a coroutine
    that runs it by `run_async`.
    """
    trial.begin()
    token = _put_clock(trial)
    try:
        while True:
            trial.attempts += 1
            try:
                value = operation(trial.seconds_left())
            except BaseException as exc:
                wait = trial.wait_after(exc, read_failure(exc))
                if wait is None:
                    raise
            else:
                if isinstance(value, CoroutineType):
                    trial.undo()
                    return run_async(trial, _beginning_with(value, operation))
                failure = trial.failure_in(value)
                if failure is None:
                    trial.succeeded()
                    return value
                wait = trial.wait_after(None, failure)
                if wait is None:
                    return value
            _wait_in_thread(trial, wait)
            trial.check_cancelled()
    finally:
        _take_clock(token)
        trial.end()


def _beginning_with(first: Any, operation: Operation) -> Operation:
    """The operation, whose first attempt was made already and returned *first*."""
    made = [first]
    return lambda left: made.pop() if made else operation(left)


def _wait_in_thread(trial: Trial, seconds: float) -> None:
    """Wait until the time is over or the call is cancelled."""
    if trial.call is None:
        trial.clock.wait(seconds)
        return
    from threading import Event

    cancelled = Event()
    stop_listening = trial.call.peer.on_cancel(cancelled.set)
    try:
        trial.clock.wait(seconds, cancelled)
    finally:
        stop_listening()


def _put_clock(trial: Trial) -> Any:
    """Let questions to the user stop the clock of the call; only a retry has one."""
    if trial.watch is None:
        return None
    return RUNNING.set((*RUNNING.get(), trial.watch))


def _take_clock(token: Any) -> None:
    if token is not None:
        RUNNING.reset(token)
