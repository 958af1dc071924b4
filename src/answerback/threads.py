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
        self._busy = 0
        self._lock = threading.Lock()

    def run(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Call the function in a thread, with the caller's context variables."""
        loop = asyncio.get_running_loop()
        returns = self._returns.get(loop)
        if returns is None:
            returns = self._returns_to(loop)
        future = loop.create_future()
        self._jobs.put((returns, future, copy_context(), function, kwargs))
        if self._busy + self._jobs.qsize() > self._started:
            self._start_one()
        return future

    def _returns_to(self, loop: asyncio.AbstractEventLoop) -> _Returns:
        for other in [other for other in self._returns if other.is_closed()]:
            del self._returns[other]
        return self._returns.setdefault(loop, _Returns(loop))

    def _start_one(self) -> None:
        with self._lock:
            if self._started >= self._size:
                return
            self._started += 1
        name = f"answerback-{self._started}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            returns, future, context, function, kwargs = self._jobs.get()
            if future.cancelled():
                continue
            with self._lock:
                self._busy += 1
            try:
                result, failed = context.run(function, **kwargs), False
            except StopIteration as exc:  # A future cannot carry it.
                result, failed = RuntimeError(f"the tool raised {exc!r}"), True
            except BaseException as exc:  # noqa: BLE001 -- it is raised again where it is awaited
                result, failed = exc, True
            with self._lock:
                self._busy -= 1
            returns.give(future, result, failed)
            del returns, future, context, function, kwargs, result


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
