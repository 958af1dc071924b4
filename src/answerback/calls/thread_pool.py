"""Runs plain functions beside the event loop.

A pool of our own, because the hop is on the path of every call: all that the loop has ready
goes in together, and all that is finished by the time it looks comes out in one wake-up.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from ..errors import Unavailable

_Job: TypeAlias = "tuple[_Way, asyncio.Future[Any], Context, Callable[..., Any], Any]"


class Pool:
    """At most *size* threads, started as they are needed; they die with the process.

    Up to *size* more replace lost threads: those that still run a call which timed out or was
    cancelled. When all of them are lost, calls are refused until a thread comes back.
    """

    def __init__(self, size: int = 40) -> None:
        self._size = size
        self.reset()
        _POOLS.add(self)

    def reset(self) -> None:
        """Begin without threads and calls; a forked child inherits the parent's calls but none
        of the parent's threads."""
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._ways: dict[asyncio.AbstractEventLoop, _Way] = {}
        self._started = 0
        self._unfinished = 0
        self._lock = threading.Lock()
        self._running: dict[int, asyncio.Future[Any]] = {}
        """What each thread is at, by its number."""
        self._said_lost = 0

    def run(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Call the function in a thread, with the caller's context variables."""
        loop = asyncio.get_running_loop()
        way = self._ways.get(loop)
        if way is None:
            way = self._way_of(loop)
        future = loop.create_future()
        way.leaving.append((way, future, copy_context(), function, kwargs))
        if len(way.leaving) == 1:
            loop.call_soon(self._send_out, way)
        return future

    def _send_out(self, way: _Way) -> None:
        """All that the loop has ready goes together: woken for each, threads would take turns
        with the loop, and every turn costs more than a quick function."""
        jobs, way.leaving = way.leaving, []
        with self._lock:
            # Counted here and not by the threads: one that is about to take a job is not free.
            self._unfinished += len(jobs)
        for job in jobs:
            self._jobs.put(job)
        self.make_room()

    def _way_of(self, loop: asyncio.AbstractEventLoop) -> _Way:
        for other in [other for other in list(self._ways) if other.is_closed()]:
            self._ways.pop(other, None)
        return self._ways.setdefault(loop, _Way(loop))

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
            can_start = self._started < self._size + min(lost, self._size)
            if can_start:
                self._started += 1
            elif self._started <= lost:
                refused = self._withdraw()
        self._warn_of_lost(lost, refusing=bool(refused))
        for way, future, *_ in refused:
            way.give(future, _no_thread(lost), failed=True)
        return can_start and self._start_thread()

    def _start_thread(self) -> bool:
        try:
            name = f"answerback-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError as exc:  # The system has no more threads; those there are will do.
            with self._lock:
                self._started -= 1
                refused = self._withdraw() if self._started <= self.lost else []
            for way, future, *_ in refused:
                way.give(future, exc, failed=True)
            return False
        return True

    def _withdraw(self) -> list[_Job]:
        """Take back the calls that no thread has taken yet; the lock is held."""
        jobs: list[_Job] = []
        with suppress(Empty):
            while True:
                jobs.append(self._jobs.get_nowait())
        self._unfinished -= len(jobs)
        return jobs

    @property
    def lost(self) -> int:
        """The number of threads that still run a call which timed out or was cancelled."""
        return sum(future.cancelled() for future in list(self._running.values()))

    def _warn_of_lost(self, lost: int, *, refusing: bool) -> None:
        if lost > self._said_lost:
            import logging

            logging.getLogger("answerback").warning(
                "%d threads have not come back from calls that nobody waits for any more%s",
                lost,
                "; calls are refused until one comes back" if refusing else "",
            )
        self._said_lost = lost

    def _is_one_too_many(self) -> bool:
        if self._started <= self._size:
            return False
        with self._lock:
            if self._started <= self._size + self.lost:
                return False
            self._started -= 1
            return True

    def _work(self) -> None:
        number = threading.get_ident()
        while not self._is_one_too_many():
            way, future, context, function, kwargs = self._jobs.get()
            result, failed = None, False
            # Before the look at the future: a caller that gives up after it finds this thread lost.
            self._running[number] = future
            if not future.cancelled():
                try:
                    result = context.run(function, **kwargs)
                except _NOT_FOR_THE_LOOP as exc:
                    result, failed = RuntimeError(f"the tool raised {exc!r}"), True
                    result.__cause__ = exc
                except BaseException as exc:  # noqa: BLE001 -- raised again where it is awaited
                    result, failed = exc, True
            self._running.pop(number, None)
            with self._lock:
                self._unfinished -= 1
            way.give(future, result, failed)
            # A thread that waits keeps nothing of the last call.
            del way, future, context, function, kwargs, result


def _no_thread(lost: int) -> Unavailable:
    message = f"All {lost} threads are held by calls that timed out or were cancelled"
    return Unavailable(message, retryable=True, hint="try again later")


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for pool in list(_POOLS):
        pool.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


# A future cannot carry the first; the others would end the loop, or the task that waits.
_NOT_FOR_THE_LOOP = (StopIteration, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)


class _Way:
    """The way out of one loop and back to it: many jobs or results, one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.leaving: list[_Job] = []
        self._loop = loop
        self._done: deque[tuple[asyncio.Future[Any], Any, bool]] = deque()
        self._awake = False

    def give(self, future: asyncio.Future[Any], result: Any, failed: bool) -> None:
        self._done.append((future, result, failed))
        if not self._awake:
            self._awake = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # The loop has closed: nobody waits any more.
                self._done.clear()

    def _deliver(self) -> None:
        # First the flag, then the results: what is given after this line wakes the loop again.
        self._awake = False
        while self._done:
            future, result, failed = self._done.popleft()
            if future.cancelled():
                continue
            if failed:
                future.set_exception(result)
            else:
                future.set_result(result)
