"""ThreadLimit: at most `Limits.threads` plain functions run at a time; further calls wait.

A call that timed out or was cancelled while its function runs on holds a lost thread. Up to as many
further functions as the limit may run in place of lost ones. When all of them are lost, the calls
that wait are refused, and so is a call that waits for `Limits.wait` seconds while no function
returns. `calls/thread_pool.py` does the same on an event loop.
"""

from __future__ import annotations

import threading
from collections import deque
from time import monotonic
from types import CoroutineType
from typing import Any

from ...calls.call import Call
from ...calls.runners import (
    AsyncRunner,
    Runner,
    all_busy,
    call_in_spare_thread,
    run_in_place,
    with_timeout,
)
from ...errors import TimedOut, ToolError, Unavailable
from ...peer import NeedsInput
from ...tools.tool import Tool


def run_within(limit: ThreadLimit, run_async: AsyncRunner) -> Runner:
    """For a wire that runs calls on its own threads: the limit holds plain functions.

    An exit in a tool only fails its call. No signal reaches such a thread, so KeyboardInterrupt and
    the like come from the tool.
    """
    in_place = run_in_place(run_async)

    def run(tool: Tool, kwargs: dict[str, Any], call: Call) -> Any:
        try:
            if tool.is_async or tool.inline:
                return in_place(tool, kwargs, call)
            if tool.timeout is not None:
                return _run_with_timeout(limit, tool, kwargs, call, run_async)
            limit.enter(call)
            try:
                value = tool.fn(**kwargs)
            finally:
                limit.leave(call)
            return run_async(value, call) if isinstance(value, CoroutineType) else value
        except BaseException as exc:
            if isinstance(exc, Exception | NeedsInput):
                raise
            raise RuntimeError(f"the tool raised {exc!r}") from exc

    return run


def _run_with_timeout(
    limit: ThreadLimit, tool: Tool, kwargs: dict[str, Any], call: Call, run_async: AsyncRunner
) -> Any:
    """Run a function for as long as the tool may take, the wait for a thread included."""
    began = monotonic()
    seconds = tool.timeout or 0.0
    if not limit.enter(call, seconds):
        error = TimedOut(f"The tool took longer than {seconds:g} seconds", hint="try again later")
        error.may_have_run = False
        raise error

    def work() -> Any:
        try:
            return tool.fn(**kwargs)
        finally:
            limit.leave(call)

    try:
        value = call_in_spare_thread(tool, work, began + seconds - monotonic())
    except TimedOut as error:
        # The function still runs, and its thread is lost; unless the function raised this itself.
        if error.thread_goes_on:
            call.cancelled = True
            limit.wake()
        raise
    return run_async(with_timeout(tool, value), call) if isinstance(value, CoroutineType) else value


class _Waiter:
    """A call that waits for its turn; it may run if *granted* when *event* is set."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.granted = False
        self.event = threading.Event()


class ThreadLimit:
    """Counts the plain functions that run. The calls that wait get their turn in order."""

    def __init__(self, size: int, wait: float = 30.0) -> None:
        self._size = size
        self._wait = wait
        self._lock = threading.Lock()
        self._running: set[Call] = set()
        self._waiting: deque[_Waiter] = deque()
        self._held_since = 0.0
        """When a call began to wait, or when a function last returned while one waited."""

    def enter(self, call: Call, seconds: float | None = None) -> bool:
        """Wait for a turn; False after *seconds*. Raises Unavailable if all threads are lost."""
        if _is_lost(call):
            # The cancellation was read before this call came here.
            raise _cancelled()
        # A cancellation may end the wait of this call, or make room for another.
        call.peer.on_cancel(self.wake)
        with self._lock:
            if not self._waiting and len(self._running) < self._size:
                self._running.add(call)
                return True
            waiter = _Waiter(call)
            if not self._waiting:
                self._held_since = monotonic()
            self._waiting.append(waiter)
            self._grant()
        timed_out = not self._wait_for(waiter, seconds)
        with self._lock:
            if waiter.granted:
                return True
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            lost = self._lost()
        if _is_lost(call):
            raise _cancelled()
        if not timed_out:
            message = f"All {lost} threads are held by calls that timed out or were cancelled"
            raise Unavailable(message, retryable=True, hint="try again later")
        return False

    def _wait_for(self, waiter: _Waiter, seconds: float | None) -> bool:
        """Whether the call got its turn within *seconds*. Raises Unavailable if nothing moves."""
        end = None if seconds is None else monotonic() + seconds
        while True:
            now = monotonic()
            if end is not None and now >= end:
                return waiter.event.is_set()
            left = self._held_since + self._wait - now
            if waiter.event.wait(max(0.0, left if end is None else min(left, end - now))):
                return True
            if left <= 0:
                with self._lock:
                    if waiter.granted or waiter not in self._waiting:
                        return True
                    self._waiting.remove(waiter)
                raise all_busy(self._size, self._wait)

    def leave(self, call: Call) -> None:
        """The function has returned."""
        with self._lock:
            self._running.discard(call)
            if self._waiting:
                self._held_since = monotonic()
                self._grant()

    def wake(self) -> None:
        """A call was cancelled or timed out: look again who waits, and who may run."""
        with self._lock:
            self._grant()

    def _lost(self) -> int:
        return sum(map(_is_lost, self._running))

    def _grant(self) -> None:
        """Give their turn to the calls that wait, as far as there is room; the lock is held."""
        lost = self._lost()
        room = self._size + min(lost, self._size) - len(self._running)
        all_lost = room <= 0 and lost == len(self._running)
        still_waiting: deque[_Waiter] = deque()
        for waiter in self._waiting:
            if room > 0 and not _is_lost(waiter.call):
                room -= 1
                waiter.granted = True
                self._running.add(waiter.call)
            elif not (all_lost or _is_lost(waiter.call)):
                still_waiting.append(waiter)
                continue
            waiter.event.set()
        self._waiting = still_waiting


def _cancelled() -> ToolError:
    return ToolError("The call was cancelled", code="CANCELLED")


def _is_lost(call: Call) -> bool:
    return call.cancelled or call.peer.cancelled
