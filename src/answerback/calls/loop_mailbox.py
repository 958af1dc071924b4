"""LoopMailbox: brings the calls of an event loop to a thread pool, and their results back.

The calls that the loop has ready go to the threads together, and all finished calls come back in
one wake-up of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from .thread_pool import Job, outcome_of


class LoopMailbox:
    """The mailbox out of one loop and back to it: many jobs or results, one wake-up."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, submit: Callable[[Sequence[Job]], None]
    ) -> None:
        self.loop = loop
        self._submit = submit
        self._outgoing: list[Job] = []
        self._done: deque[_LoopJob] = deque()
        self._awake = False

    def put(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Let a thread call the function; the future gets its outcome."""
        job = _LoopJob(self, function, kwargs)
        self._outgoing.append(job)
        if len(self._outgoing) == 1:
            self.loop.call_soon(self._send_out)
        return job.future

    def _send_out(self) -> None:
        jobs, self._outgoing = self._outgoing, []
        self._submit(jobs)

    def post(self, job: _LoopJob) -> None:
        """Deliver the outcome of a job; any thread may call this."""
        self._done.append(job)
        if not self._awake:
            self._awake = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # The loop has closed, so no caller waits.
                self._done.clear()

    def _deliver(self) -> None:
        # Reset the flag first, so that a result posted from now on wakes the loop again.
        self._awake = False
        while self._done:
            job = self._done.popleft()
            if job.future.cancelled():
                continue
            if job.error is None:
                job.future.set_result(job.value)
            else:
                job.future.set_exception(job.error)


class _LoopJob:
    """The call of a function for which a future of the loop waits."""

    __slots__ = ("_context", "_function", "_kwargs", "_mailbox", "error", "future", "loop", "value")

    def __init__(
        self, mailbox: LoopMailbox, function: Callable[..., Any], kwargs: dict[str, Any]
    ) -> None:
        self._mailbox = mailbox
        self._context = copy_context()
        self._function = function
        self._kwargs = kwargs
        self.loop: asyncio.AbstractEventLoop | None = mailbox.loop
        self.future: asyncio.Future[Any] = mailbox.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None

    @property
    def is_lost(self) -> bool:
        return self.future.cancelled()

    def run(self) -> None:
        if not self.future.cancelled():
            self.value, self.error = outcome_of(self._context, self._function, self._kwargs)

    def finish(self) -> None:
        self._mailbox.post(self)

    def refuse(self, error: Exception) -> None:
        self.error = error
        self._mailbox.post(self)
