"""Runs plain functions beside the event loop.

A pool of our own, because the hop is on the path of every call: all that the loop has ready
goes in together, and all that is finished by the time it looks comes out in one wake-up.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeAlias

_Job: TypeAlias = "tuple[_Way, asyncio.Future[Any], Context, Callable[..., Any], Any]"


class Pool:
    """At most *size* threads, started as they are needed; they die with the process."""

    def __init__(self, size: int = 40) -> None:
        self._size = size
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
        for job in jobs:
            try:
                self._make_room()
            except RuntimeError as exc:
                way.give(job[1], exc, failed=True)
            else:
                self._jobs.put(job)

    def _way_of(self, loop: asyncio.AbstractEventLoop) -> _Way:
        for other in [other for other in list(self._ways) if other.is_closed()]:
            self._ways.pop(other, None)
        return self._ways.setdefault(loop, _Way(loop))

    def _make_room(self) -> None:
        """Count one more job; there is a thread for each, up to the limit."""
        with self._lock:
            self._unfinished += 1
            # Counted here and not by the threads: one that is about to take a job is not free.
            if self._unfinished <= self._started:
                return
            if self._started >= self._size + self._replaceable():
                return
            self._started += 1
        try:
            name = f"answerback-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError:  # The system has no more threads; those there are will do.
            with self._lock:
                self._started -= 1
                if not self._started:
                    self._unfinished -= 1
                    raise

    @property
    def lost(self) -> int:
        """The threads whose call nobody waits for any more, and which have not come back."""
        return sum(future.cancelled() for future in list(self._running.values()))

    def _replaceable(self) -> int:
        """Lost threads have others in their places; not without end, and not without a word."""
        lost = self.lost
        if lost > self._said_lost:
            import logging

            logging.getLogger("answerback").warning(
                "%d threads have not come back from calls that nobody waits for any more", lost
            )
        self._said_lost = lost
        return min(lost, self._size)

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
            if not future.cancelled():
                self._running[number] = future
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
