"""MCP over stdin and stdout, one message per line.

One thread reads. It answers what it can at once, hands plain functions to the thread pool, and
leaves work that needs an event loop to one, started in a thread at the first such request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING

from ...calls.loop_thread import GivenLoop, LoopThread
from ...calls.runners import execution_in
from ...calls.runtime import Runtime, TaskStorage
from ...calls.thread_pool import ThreadPool
from ...errors import AnswerbackError
from ...protocol.connection import Connection
from ...protocol.engine import Engine
from ...registry.declarations import Recording, Registry
from ..standard_streams import Stdout
from .pipe import Pipe

if TYPE_CHECKING:
    import asyncio

    from ...core.signing import Signer
    from ...registry.lifespan import Lifespan, LifespanFailed


_CANCEL_SECONDS = 1.0
"""The seconds cancelled calls get for `finally` blocks when a signal ends the server."""


class StdinUnreadable(AnswerbackError):
    code = "STDIN_UNREADABLE"


class StdioServer:
    """Serves one client until it closes its end. *source* is the descriptor to read from.

    *loop* runs coroutines in place of a loop of the server's own. The other arguments are those of
    `Runtime`.
    """

    def __init__(
        self,
        registry: Registry,
        out: Stdout,
        source: int,
        *,
        records: Recording | None = None,
        task_store: TaskStorage | None = None,
        debug: bool = False,
        loop: GivenLoop | None = None,
    ) -> None:
        self._ended = threading.Event()
        self._has_loop = threading.Event()
        """Set once the lifespan is the first thing on the event loop."""
        self._pipe = pipe = Pipe(source, out, self._ended.set)
        self._loop = LoopThread("answerback-loop") if loop is None else loop
        self._is_interrupted = False
        pool = ThreadPool(registry.limits.threads, registry.limits.wait)
        self._runtime = runtime = Runtime(
            registry,
            execution_in(pool, self._loop),
            records=records,
            task_store=task_store,
            debug=debug,
        )
        runtime.development = debug
        runtime.get_loop = self._get_loop
        if task_store is not None:
            from ...tasks.service import task_service

            # Tasks from an earlier run may be waiting.
            task_service(runtime)
        self._connection = Connection(
            registry,
            Engine(runtime, _signer),
            pipe.send,
            pipe.peer,
            pipe.resolve,
            self._post_to_loop,
        )
        self._lifespan = registry.lifespan
        self._lifespan_failure: LifespanFailed | None = None
        self._reading_failure: Exception | None = None

    def interrupt(self) -> None:
        """End the server as Ctrl-C does; for a server that does not run in the main thread."""
        self._is_interrupted = True
        self._ended.set()

    def run(self) -> None:
        """Serve until the client has closed its end and its requests are answered.

        An exception that a signal raises here cancels the calls, which get a second to end.
        The lifespan starts while requests are read, and ends after the last answer.
        Raises StdinUnreadable if stdin cannot be read, and LifespanFailed.
        """
        try:
            threading.Thread(target=self._read, name="answerback-reader", daemon=True).start()
            if self._lifespan is not None:
                import asyncio

                asyncio.run_coroutine_threadsafe(self._open(self._lifespan), self._loop.loop)
            self._has_loop.set()
            self._ended.wait()
            if self._is_interrupted:
                raise KeyboardInterrupt
            self._pipe.decline_all()
            self._wait_until_answered(self._pipe.is_broken)
            self._end_tasks(self._runtime.registry.limits.shutdown)
        except (KeyboardInterrupt, SystemExit):
            self._ended.set()
            self._pipe.decline_all()
            self._connection.cancel_all()
            until = monotonic() + _CANCEL_SECONDS
            self._wait_until_answered(lambda: monotonic() > until)
            self._end_tasks(max(until - monotonic(), 0.0))
            self._end_lifespan()
            raise
        self._end_lifespan()
        if self._lifespan_failure is not None:
            raise self._lifespan_failure
        if (failure := self._reading_failure) is not None:
            raise StdinUnreadable(f"cannot read stdin: {failure}") from failure

    def _read(self) -> None:
        try:
            while not self._ended.is_set() and (line := self._pipe.read_line()) is not None:
                self._connection.receive(line)
        except Exception as exc:  # noqa: BLE001 -- whatever ends the reading ends the server
            self._reading_failure = exc
        self._ended.set()

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        self._has_loop.wait()
        return self._loop.loop

    def _post_to_loop(self, callback: Callable[[asyncio.AbstractEventLoop], object]) -> None:
        self._has_loop.wait()
        self._loop.post(callback)

    def _wait_until_answered(self, give_up: Callable[[], bool]) -> None:
        self._connection.wait_until_answered(give_up)
        self._pipe.wait_until_sent(give_up)

    async def _open(self, lifespan: Lifespan) -> None:
        """Start the lifespan; a failure ends the server, unless it is already ending."""
        failure = await lifespan.try_to_start(self)
        if failure is not None:
            self._lifespan_failure = failure
            self._ended.set()

    def _end_tasks(self, seconds: float) -> None:
        """Let tasks stored in a file end; nobody could read the others' results."""
        tasks = self._runtime.tasks
        if tasks is not None and self._runtime.task_store is not None:
            # A function that blocks the event loop must not keep the process alive.
            with suppress(TimeoutError):
                self._loop.run(tasks.stop(seconds), seconds + _CANCEL_SECONDS)

    def _end_lifespan(self) -> None:
        """Close the lifespan, unless it has failed."""
        lifespan = self._lifespan
        if lifespan is None or self._lifespan_failure is not None:
            return
        try:
            # Extra time, because the end has the same time-out and a better message.
            failure = self._loop.run(lifespan.try_to_stop(self), lifespan.seconds + 2.0)
        except TimeoutError:
            from ...registry.lifespan import LifespanFailed, log_failure

            seconds = lifespan.seconds
            failure = LifespanFailed(f"the lifespan did not end within {seconds:g} seconds")
            log_failure(failure)
        self._lifespan_failure = failure


@cache
def _signer() -> Signer:
    from ...core.signing import signer_from_environment

    return signer_from_environment()[0]
