"""Runs tools on an event loop: plain functions in a pool of threads beside it.

The pool is our own, because every call passes it: the calls that the loop has ready go to the
threads together, and all finished calls come back in one wake-up of the loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from time import monotonic
from types import CoroutineType
from typing import Any, TypeAlias

from ..errors import Unavailable
from ..registry import HealthState
from ..tools.tool import Tool
from ..types.describe import counted
from .call import Call
from .handlers import Execution
from .runners import (
    AsyncRunner,
    LargeDecoder,
    Runner,
    all_busy,
    decode_arguments,
    run_in_new_loop,
    with_timeout,
)

_Job: TypeAlias = "tuple[_LoopMailbox, asyncio.Future[Any], Context, Callable[..., Any], Any]"


def execution_on_loop(pool: ThreadPool) -> Execution:
    """For a wire with an event loop; functions run in *pool*."""
    # One thread of its own: slow functions do not hold up decoding, and two large texts at the same
    # time would make every other call wait longer.
    decoding = ThreadPool(1)
    run_async = run_async_for_thread(pool, run_in_new_loop)

    def close() -> None:
        pool.close()
        decoding.close()

    return Execution(run_on_loop(pool), run_async, decode_in_thread(decoding), close=close)


def run_on_loop(pool: ThreadPool) -> Runner:
    """For a wire with an event loop: a plain `def` runs in a thread, because real ones block."""

    def run(tool: Tool, kwargs: dict[str, Any], call: Call) -> Any:
        if tool.is_async:
            running = _separate_self_cancel(tool.fn(**kwargs))
        elif tool.inline:
            running = tool.fn(**kwargs)
        else:
            running = _run_in_thread(pool, tool, kwargs)
        if tool.timeout is None or not isinstance(running, CoroutineType):
            return running
        return with_timeout(tool, running)

    return run


def run_async_for_thread(pool: ThreadPool, otherwise: AsyncRunner) -> AsyncRunner:
    """Let a function in a thread of the pool wait for a coroutine on the loop of its call."""

    def run(steps: Coroutine[Any, Any, Any], call: Call) -> Any:
        future = pool._running.get(threading.get_ident())
        if future is None:
            return otherwise(steps, call)
        return asyncio.run_coroutine_threadsafe(steps, future.get_loop()).result()

    return run


def decode_in_thread(pool: ThreadPool) -> LargeDecoder:
    """Decode large arguments in a thread of the pool, so that other calls go on meanwhile."""

    async def decode(tool: Tool, raw: bytes, max_values: int) -> dict[str, Any]:
        given = {"tool": tool, "raw": raw, "max_values": max_values}
        # Shielded, because the thread of a cancelled call would count as lost, and be replaced.
        decoded: dict[str, Any] = await asyncio.shield(pool.run(decode_arguments, given))
        return decoded

    return decode


async def _run_in_thread(pool: ThreadPool, tool: Tool, kwargs: dict[str, Any]) -> Any:
    running = pool.run(tool.fn, kwargs)
    try:
        value = await running
    except BaseException:
        if running.cancelled():
            pool.make_room()
        raise
    # A plain function may return the coroutine of an async one, as many decorators do.
    return await value if isinstance(value, CoroutineType) else value


async def _separate_self_cancel(running: Coroutine[Any, Any, Any]) -> Any:
    """Await a tool that may cancel itself; only a cancellation of the call ends more than it."""
    try:
        return await running
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("the tool cancelled itself") from exc


class ThreadPool:
    """At most *size* threads, started as they are needed; they die with the process.

    Up to *size* more replace lost threads: those that still run a call which timed out or was
    cancelled. When all of them are lost, calls are refused until a thread comes back. Calls that
    wait for *wait* seconds, while no running call ends, are refused too.

    A function may make calls itself, with `asyncio.run(app.call(…))`. While its thread waits for
    them another one replaces it, so that calls within calls cannot use up the threads.
    """

    held_seconds = 10.0
    """The pool is not ready if calls wait and no running call has ended for so long."""

    def __init__(self, size: int = 40, wait: float = 30.0) -> None:
        self._size = size
        self._wait = wait
        self.reset()
        _POOLS.add(self)

    def reset(self) -> None:
        """Start without threads and calls: a forked child inherits none of the parent's threads."""
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        """The calls that wait; a None only wakes a thread that may be surplus."""
        self._mailboxes: dict[asyncio.AbstractEventLoop, _LoopMailbox] = {}
        self._started = 0
        self._unfinished = 0
        self._lock = threading.Lock()
        self._running: dict[int, asyncio.Future[Any]] = {}
        """The call that each thread runs, by the thread's number."""
        self._nested: dict[int, int] = {}
        """How many calls each thread waits for that runs a loop of its own, by its number."""
        self._reported_lost = 0
        self._held_since: float | None = None
        """When a call began to wait for a thread; None after a call ended."""
        self._is_timed = False
        """Whether a timer looks after the calls that wait."""

    def close(self) -> None:
        """Let the threads end once their calls have; calls are refused from now on."""
        with self._lock:
            self._size = 0
            for _ in range(self._started):
                self._jobs.put(None)

    def run(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Call the function in a thread, with the caller's context variables."""
        loop = asyncio.get_running_loop()
        mailbox = self._mailboxes.get(loop)
        if mailbox is None:
            mailbox = self._mailbox_of(loop)
        future = loop.create_future()
        if threading.get_ident() in self._running:
            self._count_nested(future)
        mailbox.outgoing.append((mailbox, future, copy_context(), function, kwargs))
        if len(mailbox.outgoing) == 1:
            loop.call_soon(self._send_out, mailbox)
        return future

    def _count_nested(self, future: asyncio.Future[Any]) -> None:
        """A function makes a call: its thread does not count until the call is done."""
        thread = threading.get_ident()

        def end(_: object) -> None:
            with self._lock:
                self._nested[thread] -= 1
                if not self._nested[thread]:
                    del self._nested[thread]
                    self._jobs.put(None)

        with self._lock:
            self._nested[thread] = self._nested.get(thread, 0) + 1
        future.add_done_callback(end)

    def _send_out(self, mailbox: _LoopMailbox) -> None:
        """Send all calls that the loop has ready to the threads at once.

        Waking a thread for each call makes loop and threads contend for the GIL, which costs
        more than a quick function.
        """
        jobs, mailbox.outgoing = mailbox.outgoing, []
        with self._lock:
            # The loop counts, not the threads: a thread that is about to take a job is not free.
            self._unfinished += len(jobs)
        for job in jobs:
            self._jobs.put(job)
        self.make_room()

    def _mailbox_of(self, loop: asyncio.AbstractEventLoop) -> _LoopMailbox:
        for other in [other for other in list(self._mailboxes) if other.is_closed()]:
            self._mailboxes.pop(other, None)
        return self._mailboxes.setdefault(loop, _LoopMailbox(loop))

    def make_room(self) -> None:
        """Start threads for the calls that wait, up to the limit; refuse the calls that wait when
        all threads are lost.

        Called after calls came in, and when a caller gives up, because the thread of its call may
        now be a lost one.
        """
        while self._unfinished > self._started and self._add_thread():
            pass

    def _add_thread(self) -> bool:
        """Start one more thread, if one is needed and may be started."""
        refused: list[_Job] = []
        with self._lock:
            if self._unfinished <= self._started:
                return False
            lost = self.lost
            can_start = self._started < self._size + min(lost, self._size) + len(self._nested)
            if can_start:
                self._started += 1
            elif self._started <= lost:
                refused = self._withdraw()
        if not can_start and self._held_since is None:
            self._held_since = monotonic()
        if not (can_start or refused or self._is_timed):
            self._is_timed = True
            asyncio.get_running_loop().call_later(self._wait, self._refuse_held)
        if lost > self._reported_lost:
            _warn_of_lost(lost, refusing=bool(refused))
        self._reported_lost = lost
        for mailbox, future, *_ in refused:
            mailbox.post(future, _no_thread(lost), failed=True)
        return can_start and self._start_thread()

    def _refuse_held(self) -> None:
        """Refuse the calls that wait, if no running call has ended for too long."""
        self._is_timed = False
        refused: list[_Job] = []
        with self._lock:
            if self._unfinished <= len(self._running):
                return
            # None if a call has ended since the timer began.
            since = self._held_since = self._held_since or monotonic()
            left = since + self._wait - monotonic()
            if left <= 0:
                refused = self._withdraw()
            else:
                self._is_timed = True
                asyncio.get_running_loop().call_later(left, self._refuse_held)
        for mailbox, future, *_ in refused:
            mailbox.post(future, all_busy(self._size, self._wait), failed=True)

    def _start_thread(self) -> bool:
        try:
            name = f"answerback-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError as exc:  # The system has no more threads; the others must do.
            with self._lock:
                self._started -= 1
                refused = self._withdraw() if self._started <= self.lost else []
            for mailbox, future, *_ in refused:
                mailbox.post(future, exc, failed=True)
            return False
        return True

    def _withdraw(self) -> list[_Job]:
        """Take back the calls that no thread has taken yet; the lock is held."""
        jobs: list[_Job] = []
        with suppress(Empty):
            while True:
                if (job := self._jobs.get_nowait()) is not None:
                    jobs.append(job)
        self._unfinished -= len(jobs)
        return jobs

    @property
    def lost(self) -> int:
        """The number of threads that still run a call which timed out or was cancelled."""
        return sum(future.cancelled() for future in list(self._running.values()))

    def check(self) -> HealthState:
        """Whether plain functions can be called: not all threads are lost or held for long."""
        lost = self.lost
        details: dict[str, bool | int | str] = {"limit": self._size, "lost": lost}
        waiting = self._unfinished - len(self._running)
        all_lost = lost >= 2 * self._size
        if all_lost or waiting <= 0 or len(self._running) < self._started:
            return HealthState(not all_lost, details)
        # None if calls still wait since another one ended.
        since = self._held_since = self._held_since or monotonic()
        is_held = monotonic() - since >= self.held_seconds
        return HealthState(not is_held, details | {"waiting": waiting})

    def _is_surplus(self) -> bool:
        if self._started <= self._size:
            return False
        with self._lock:
            if self._started <= self._size + self.lost + len(self._nested):
                return False
            self._started -= 1
            return True

    def _work(self) -> None:
        number = threading.get_ident()
        while not self._is_surplus():
            job = self._jobs.get()
            if job is None:
                continue
            mailbox, future, context, function, kwargs = job
            result, failed = None, False
            # Set before the check: a caller that cancels after the check finds this thread lost.
            self._running[number] = future
            if not future.cancelled():
                try:
                    result = context.run(function, **kwargs)
                except _MUST_NOT_REACH_LOOP as exc:
                    result, failed = RuntimeError(f"the tool raised {exc!r}"), True
                    result.__cause__ = exc
                except BaseException as exc:  # noqa: BLE001 -- raised again where it is awaited
                    result, failed = exc, True
            self._running.pop(number, None)
            with self._lock:
                self._unfinished -= 1
                self._held_since = None
            mailbox.post(future, result, failed)
            # A waiting thread must not keep the objects of its last call alive.
            del job, mailbox, future, context, function, kwargs, result


def _warn_of_lost(lost: int, *, refusing: bool) -> None:
    import logging

    logging.getLogger("answerback").warning(
        "%s still run calls that timed out or were cancelled%s"
        if lost > 1
        else "%s still runs a call that timed out or was cancelled%s",
        counted(lost, "thread"),
        "; calls are refused until one of them returns" if refusing else "",
    )


def _no_thread(lost: int) -> Unavailable:
    message = f"All {lost} threads are held by calls that timed out or were cancelled"
    return Unavailable(message, retryable=True, hint="try again later")


_POOLS: weakref.WeakSet[ThreadPool] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for pool in list(_POOLS):
        pool.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


# A future cannot carry StopIteration; the others would end the loop or the task that waits.
_MUST_NOT_REACH_LOOP = (StopIteration, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)


class _LoopMailbox:
    """The mailbox out of one loop and back to it: many jobs or results, one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.outgoing: list[_Job] = []
        self._loop = loop
        self._done: deque[tuple[asyncio.Future[Any], Any, bool]] = deque()
        self._awake = False

    def post(self, future: asyncio.Future[Any], result: Any, failed: bool) -> None:
        self._done.append((future, result, failed))
        if not self._awake:
            self._awake = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # The loop has closed, so no caller waits.
                self._done.clear()

    def _deliver(self) -> None:
        # Reset the flag first, so that a result posted from now on wakes the loop again.
        self._awake = False
        while self._done:
            future, result, failed = self._done.popleft()
            if future.cancelled():
                continue
            if failed:
                future.set_exception(result)
            else:
                future.set_result(result)
