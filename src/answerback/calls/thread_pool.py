"""ThreadPool: the threads in which blocking functions run.

A server has three pools. Authors' functions may hold every thread of the first two: one is for
calls, the other for tasks, which hold a thread for minutes. The third is for our own functions,
which end soon: stores, the bus between hosts, and large decodes.

We use our own pool because every call goes through it, and because it replaces threads that are
stuck in abandoned calls. An event loop hands all its ready calls to the threads together, and
receives all finished calls in one wake-up.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.background_work import after_fork
from ..core.event_loop import running_loop
from ..core.log import logger
from ..errors import Unavailable
from ..registry.declarations import HealthState
from ..types.problems import counted

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
OUR_THREADS = 8
"""The size of the third pool: one thread per database connection, and as many for files."""


class ThreadPool:
    """At most *size* threads, started as they are needed; they die with the process.

    Up to *size* more replace lost threads: those still running a call that timed out or was
    cancelled. When all threads are lost, calls are refused until one of them returns. Calls are
    also refused once they have waited *wait* seconds without any running call ending.

    A function may itself make calls, with `asyncio.run(app.call(…))`. While its thread waits for
    them another one replaces it, so nested calls cannot use up the threads.
    """

    held_seconds = 10.0
    """The pool is not ready if calls are waiting and no running call has ended for this long."""

    def __init__(self, size: int = 40, wait: float = 30.0) -> None:
        self._size = size
        self._wait = wait
        self.reset()
        after_fork(self.reset)

    def reset(self) -> None:
        """Start with no threads or calls: a forked child inherits none of the parent's threads."""
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        """The waiting calls; None just wakes a thread that may be surplus."""
        self._mailboxes: dict[asyncio.AbstractEventLoop, _Mailbox] = {}
        self._turns: MutableMapping[asyncio.AbstractEventLoop, asyncio.Lock]
        self._turns = weakref.WeakKeyDictionary()
        self._started = 0
        self._unfinished = 0
        self._lock = threading.Lock()
        self._running: dict[int, _Job] = {}
        """The call that each thread is running, by thread number."""
        self._nested: dict[int, int] = {}
        """How many calls each thread with its own loop is waiting for, by thread number."""
        self._reported_lost = 0
        self._held_since: float | None = None
        """When a call began to wait for a thread; None once a call has ended."""
        self._timer: threading.Timer | None = None
        """Runs while calls are waiting for a thread."""

    def close(self) -> None:
        """Let the threads end after their calls; refuse calls from now on."""
        with self._lock:
            self._size = 0
            for _ in range(self._started):
                self._jobs.put(None)

    def run(
        self,
        function: Callable[..., Any],
        kwargs: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
    ) -> asyncio.Future[Any]:
        """Call the function in a thread, with the running task's context variables."""
        mailbox = self._mailboxes.get(loop)
        if mailbox is None:
            for other in [other for other in list(self._mailboxes) if other.is_closed()]:
                self._mailboxes.pop(other, None)
            mailbox = self._mailboxes.setdefault(loop, _Mailbox(loop, self.submit))
        future = mailbox.put(function, kwargs)
        if threading.get_ident() in self._running:
            self._count_nested(future)
        return future

    async def off_loop(self, function: Callable[..., T], *args: object) -> T:
        """Call a function in a thread, or in place without an event loop: an `OffLoop`."""
        loop = running_loop()
        if loop is None:
            return function(*args)
        import asyncio

        # Shielded, because a cancelled call's thread would count as lost, and be replaced.
        value: T = await asyncio.shield(self.run(partial(function, *args), {}, loop))
        return value

    async def one_at_a_time(self, function: Callable[..., T], *args: object) -> T:
        """Call a function like `off_loop`, after the loop's earlier ones have ended."""
        import asyncio

        turn = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

        async def call() -> T:
            async with turn:
                return await self.off_loop(function, *args)

        # Shielded, because the function runs to its end even if its caller is cancelled.
        return await asyncio.shield(asyncio.ensure_future(call()))

    def current_loop(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop that the caller of this thread's function is waiting on."""
        job = self._running.get(threading.get_ident())
        return None if job is None else job.loop

    def running_contexts(self) -> list[Context]:
        """Return the context variables of each function that is running."""
        return [job.context for job in list(self._running.values())]

    def submit(self, jobs: Sequence[_Job]) -> None:
        """Hand the jobs to the threads. Submitting many at once is cheaper.

        Waking a thread for each call makes the caller and the threads contend for the GIL, which
        costs more than a quick function.
        """
        with self._lock:
            # Counted here, not by the threads: a thread about to take a job is not free.
            self._unfinished += len(jobs)
        for job in jobs:
            self._jobs.put(job)
        self.make_room()

    def _count_nested(self, future: asyncio.Future[Any]) -> None:
        """Stop counting a thread while its function waits for a call that it made."""
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

    def make_room(self) -> None:
        """Start threads for waiting calls, up to the limit; refuse them if all threads are lost.

        Called when calls arrive, and when a caller gives up, because its call's thread may now be
        lost.
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
            else:
                self._watch_held()
        if lost > self._reported_lost:
            logger().warning(
                "%s are still running calls that timed out or were cancelled%s"
                if lost > 1
                else "%s is still running a call that timed out or was cancelled%s",
                counted(lost, "thread"),
                "; calls are refused until one of them returns" if refused else "",
            )
        self._reported_lost = lost
        message = f"All {lost} threads are held by calls that timed out or were cancelled"
        for job in refused:
            job.refuse(_unavailable(message))
        return can_start and self._start_thread()

    def _watch_held(self) -> None:
        """Refuse waiting calls once no call has ended for too long; the lock is held."""
        # None if a call has ended since the timer started.
        since = self._held_since = self._held_since or monotonic()
        if self._timer is None:
            left = since + self._wait - monotonic()
            self._timer = threading.Timer(max(left, 0.0), self._refuse_held)
            self._timer.daemon = True
            self._timer.start()

    def _refuse_held(self) -> None:
        """Refuse waiting calls if no running call has ended for too long."""
        refused: list[_Job] = []
        with self._lock:
            self._timer = None
            if self._unfinished <= len(self._running):
                return
            if self._held_since is None or monotonic() - self._held_since < self._wait:
                self._watch_held()
            else:
                refused = self._withdraw()
        seconds = f"{self._wait:g} seconds"
        message = f"All {self._size} threads are busy, and none became free within {seconds}"
        for job in refused:
            job.refuse(_unavailable(message))

    def _start_thread(self) -> bool:
        try:
            name = f"answerback-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError as exc:  # No more threads can be started; wait for the others.
            with self._lock:
                self._started -= 1
                refused = self._withdraw() if self._started <= self.lost else []
            for job in refused:
                job.refuse(exc)
            return False
        return True

    def _withdraw(self) -> list[_Job]:
        """Take back the calls that no thread has started; the lock is held."""
        jobs: list[_Job] = []
        with suppress(Empty):
            while True:
                if (job := self._jobs.get_nowait()) is not None:
                    jobs.append(job)
        self._unfinished -= len(jobs)
        return jobs

    @property
    def lost(self) -> int:
        """The number of threads still running a call that timed out or was cancelled."""
        return sum(job.is_lost for job in list(self._running.values()))

    def check(self) -> HealthState:
        """Report a failure if every thread is lost or has been busy for too long."""
        lost = self.lost
        details: dict[str, bool | int | str] = {"limit": self._size, "lost": lost}
        waiting = self._unfinished - len(self._running)
        all_lost = lost >= 2 * self._size
        if all_lost or waiting <= 0 or len(self._running) < self._started:
            return HealthState(not all_lost, details)
        # None if a call has ended since.
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
            # Set before the job begins: a caller that gives up from now on finds this thread lost.
            self._running[number] = job
            job.run()
            self._running.pop(number, None)
            with self._lock:
                self._unfinished -= 1
                self._held_since = None
                if self._timer is not None and self._unfinished <= len(self._running):
                    self._timer.cancel()
                    self._timer = None
            job.finish()
            # A waiting thread must not keep the objects of its last call alive.
            del job


class _Mailbox:
    """Carries jobs out of one loop and results back to it: many per wake-up."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, submit: Callable[[Sequence[_Job]], None]
    ) -> None:
        self.loop = loop
        self._submit = submit
        self._outgoing: list[_Job] = []
        self._done: deque[_Job] = deque()
        self._awake = False

    def put(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> asyncio.Future[Any]:
        """Have a thread call the function; the future receives its outcome."""
        job = _Job(self, function, kwargs)
        self._outgoing.append(job)
        if len(self._outgoing) == 1:
            self.loop.call_soon(self._send_out)
        return job.future

    def _send_out(self) -> None:
        jobs, self._outgoing = self._outgoing, []
        self._submit(jobs)

    def post(self, job: _Job) -> None:
        """Deliver the outcome of a job. May be called from any thread."""
        self._done.append(job)
        if not self._awake:
            self._awake = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # The loop has closed, so no caller is waiting.
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


class _Job:
    """A function call whose outcome goes to a future on the loop."""

    __slots__ = ("_function", "_kwargs", "_mailbox", "context", "error", "future", "loop", "value")

    def __init__(
        self, mailbox: _Mailbox, function: Callable[..., Any], kwargs: dict[str, Any]
    ) -> None:
        self._mailbox = mailbox
        self.context = copy_context()
        self._function = function
        self._kwargs = kwargs
        self.loop = mailbox.loop
        self.future: asyncio.Future[Any] = mailbox.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None

    @property
    def is_lost(self) -> bool:
        return self.future.cancelled()

    def run(self) -> None:
        if not self.future.cancelled():
            self.value, self.error = _outcome_of(self.context, self._function, self._kwargs)
        del self  # An error's traceback keeps this frame alive, and the job keeps the error.

    def finish(self) -> None:
        self._mailbox.post(self)

    def refuse(self, error: Exception) -> None:
        self.error = error
        self._mailbox.post(self)


def _outcome_of(
    context: Context, function: Callable[..., Any], kwargs: dict[str, Any]
) -> tuple[Any, BaseException | None]:
    """Call a function in *context*; return its value, or the exception it raised."""
    try:
        return context.run(function, **kwargs), None
    except BaseException as exc:  # noqa: BLE001 -- raised again where the call is awaited
        # Looked up, not imported: without asyncio nothing raises it.
        cancelled = getattr(sys.modules.get("asyncio.exceptions"), "CancelledError", ())
        if not isinstance(exc, _MUST_NOT_LEAVE) and not isinstance(exc, cancelled):
            return None, exc
        error = RuntimeError(f"the tool raised {exc!r}")
        error.__cause__ = exc
        return None, error


# A future cannot carry StopIteration; the other exceptions would end the loop or the waiting task.
_MUST_NOT_LEAVE = (StopIteration, KeyboardInterrupt, GeneratorExit)


def _unavailable(message: str) -> Unavailable:
    return Unavailable(message, retryable=True, hint="try again later")
