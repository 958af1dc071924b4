"""Runs plain functions beside the event loop.

A pool of our own, because the hop is on the path of every call: work goes in through
one queue, and all that is finished by the time the loop looks comes out in one wake-up.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeAlias

_Job: TypeAlias = "tuple[_Returns, asyncio.Future[Any], Context, Callable[..., Any], Any]"


class Pool:
    """At most *size* threads, started as they are needed; they die with the process."""

    def __init__(self, size: int = 40) -> None:
        self._size = size
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._returns: dict[asyncio.AbstractEventLoop, _Returns] = {}
        self._started = 0
        self._unfinished = 0
        self._lock = threading.Lock()
        self._running: dict[int, asyncio.Future[Any]] = {}
        """What each thread is at, by its number."""
        self._said_lost = 0

    def run(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Call the function in a thread, with the caller's context variables."""
        loop = asyncio.get_running_loop()
        returns = self._returns.get(loop)
        if returns is None:
            returns = self._returns_to(loop)
        self._make_room()
        future = loop.create_future()
        self._jobs.put((returns, future, copy_context(), function, kwargs))
        return future

    def _returns_to(self, loop: asyncio.AbstractEventLoop) -> _Returns:
        for other in [other for other in list(self._returns) if other.is_closed()]:
            self._returns.pop(other, None)
        return self._returns.setdefault(loop, _Returns(loop))

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
            returns, future, context, function, kwargs = self._jobs.get()
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
            returns.give(future, result, failed)
            # A thread that waits keeps nothing of the last call.
            del returns, future, context, function, kwargs, result


# A future cannot carry the first; the others would end the loop, or the task that waits.
_NOT_FOR_THE_LOOP = (StopIteration, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)


class _Returns:
    """The way back to one loop: many results, one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
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
