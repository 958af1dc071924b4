"""Runs the coroutines that answer messages: by hand, in a thread of the pool, or on the loop.

The thread that reads steps a coroutine until it waits. If it waits for a function, a thread of the
pool calls that function, goes on with the coroutine and sends the answer. If it needs an event
loop, the loop goes on with it, and no thread waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeAlias

from ...calls.failures import log_internal_error
from ...calls.stepping import NO_LOOP, ON_LOOP, InThread
from ...calls.thread_pool import outcome_of
from ...errors import ToolError
from ...mcp.mcp_peer import McpPeer

if TYPE_CHECKING:
    import asyncio

Answer: TypeAlias = "Callable[[StdioAnswering], Coroutine[Any, Any, None]]"
"""Makes the coroutine that answers a message."""


class Unanswered:
    """The messages that are being answered, other than the one that the reading thread steps."""

    def __init__(self, get_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.get_loop = get_loop
        self._running: set[StdioAnswering] = set()
        self._ended = threading.Condition()

    def start(self, answer: Answer) -> None:
        """Start a coroutine that answers a message."""
        StdioAnswering(self, answer).begin()

    def add(self, answering: StdioAnswering) -> None:
        self._running.add(answering)

    def discard(self, answering: StdioAnswering) -> None:
        with self._ended:
            self._running.discard(answering)
            self._ended.notify()

    def wait(self, give_up: Callable[[], bool]) -> None:
        """Wait until all are answered, or until *give_up* says so."""
        with self._ended:
            while self._running and not give_up():
                self._ended.wait(0.1)


class StdioAnswering:
    """One coroutine, which is always in one place: it is stepped, in the pool, or on the loop."""

    _is_handed_over = False
    """Whether something else than the thread that read the message has gone on with it."""
    _peer: McpPeer | None = None
    _job: ThreadJob | None = None
    _task: asyncio.Task[None] | None = None
    _cancelled: McpPeer | None = None
    """The peer whose request was cancelled on the loop."""

    def __init__(self, unanswered: Unanswered, answer: Answer) -> None:
        self._unanswered = unanswered
        self._steps = self._run(answer)
        # One for all steps: a context variable is reset in the context that it was set in.
        self.context = copy_context()

    @property
    def peer(self) -> McpPeer | None:
        """The peer of the request that is answered now."""
        return self._peer

    @peer.setter
    def peer(self, peer: McpPeer | None) -> None:
        self._peer = peer
        if self._is_handed_over and peer is not None:
            peer.on_cancel(self._cancel)

    def begin(self) -> None:
        self.go_on(self._steps.send, None)

    def go_on(self, resume: Callable[[Any], Any], value: Any) -> None:
        """Step the coroutine until it waits, in this thread."""
        try:
            wanted = self.context.run(resume, value)
            while not isinstance(wanted, InThread) and wanted is not ON_LOOP:
                wanted = self.context.run(self._steps.throw, RuntimeError(NO_LOOP))
        except StopIteration:
            return
        if not self._is_handed_over:
            self._is_handed_over = True
            self._unanswered.add(self)
            self.peer = self._peer
        if isinstance(wanted, InThread):
            self._job = ThreadJob(self, wanted)
            wanted.pool.submit((self._job,))
            self._cancel()
        else:
            loop = self._unanswered.get_loop()
            loop.call_soon_threadsafe(self._move_to_loop, loop)

    def throw(self, error: BaseException) -> None:
        """Let the coroutine go on with an error."""
        self.go_on(self._steps.throw, error)

    def send(self, value: Any) -> None:
        """Let the coroutine go on with the value that it waited for."""
        self.go_on(self._steps.send, value)

    @property
    def is_cancelled(self) -> bool:
        return self._peer is not None and self._peer.cancelled

    async def _run(self, answer: Answer) -> None:
        try:
            await answer(self)
        except Exception:  # noqa: BLE001 -- a bug of ours ends one response, not the server
            log_internal_error("a response")
        finally:
            if self._is_handed_over:
                self._unanswered.discard(self)

    def _cancel(self) -> None:
        """Stop to answer the request, if it was cancelled; any thread may call this."""
        if not self.is_cancelled:
            return
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._cancel_task, self._task)
        elif self._job is not None:
            self._job.cancel()

    def _move_to_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._steps, context=self.context)
        # The cancellation may have come before there was a task.
        self._cancel()

    def _cancel_task(self, task: asyncio.Task[None]) -> None:
        # Once: a second cancellation would interrupt a `finally` block.
        if self._cancelled is not self._peer:
            self._cancelled = self._peer
            task.cancel()


class ThreadJob:
    """A function that a coroutine waits for. Whoever takes the job goes on with the coroutine."""

    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, answering: StdioAnswering, wanted: InThread) -> None:
        self._answering = answering
        self._wanted = wanted
        self._free = [True]
        """Empty once the pool, or a cancellation, has taken the job; `pop` is atomic."""
        self._outcome: tuple[Any, BaseException | None] | None = None

    @property
    def is_lost(self) -> bool:
        return self._answering.is_cancelled

    def run(self) -> None:
        if self._take():
            wanted = self._wanted
            self._outcome = outcome_of(self._answering.context, wanted.function, wanted.kwargs)

    def finish(self) -> None:
        if self._outcome is None:
            return
        value, error = self._outcome
        if error is None:
            self._answering.send(value)
        else:
            self._answering.throw(error)

    def refuse(self, error: Exception) -> None:
        if self._take():
            self._answering.throw(error)

    def cancel(self) -> None:
        """The function is not called if no thread has begun it; else its thread is lost."""
        if self._take():
            self._answering.throw(ToolError("The call was cancelled", code="CANCELLED"))
        else:
            self._wanted.pool.make_room()

    def _take(self) -> bool:
        try:
            return self._free.pop()
        except IndexError:
            return False
