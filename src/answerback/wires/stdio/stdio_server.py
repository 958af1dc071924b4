"""MCP over stdin and stdout, one message a line.

It needs no event loop; one starts in a thread at the first call of an `async` tool.
"""

from __future__ import annotations

import threading
from collections.abc import Coroutine
from contextlib import suppress
from functools import cache, cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any

from ...calls.call import Call
from ...calls.handlers import Execution
from ...calls.runtime import Runtime
from ...errors import AnswerbackError, ToolError
from ...mcp.connection import Connection
from ...mcp.engine import Engine
from ...registry import Registry
from ..standard_streams import Stdout
from .handover import Readers
from .pipe import Pipe
from .thread_limit import ThreadLimit, run_within

if TYPE_CHECKING:
    import asyncio

    from ...lifespan import LifespanFailed, ThreadRun
    from ...signing import Signer


_CANCEL_SECONDS = 1.0
"""The time that cancelled calls get to run their `finally` blocks when a signal ends the server."""


class StdinUnreadable(AnswerbackError):
    code = "STDIN_UNREADABLE"


class StdioServer:
    """Serves one client until it closes its end. *source* is the descriptor to read from."""

    def __init__(
        self, registry: Registry, out: Stdout, source: int, *, task_store: Any = None
    ) -> None:
        self._ended = threading.Event()
        self._pipe = pipe = Pipe(source, out, self._ended.set)
        limits = registry.limits
        loop = self._loop = _LoopThread()
        run = run_within(ThreadLimit(limits.threads, limits.wait), loop.run)
        execution = Execution(run, loop.run, is_in_place=True)
        self._runtime = runtime = Runtime(registry, execution, task_store=task_store)
        runtime.get_loop = lambda: loop.loop
        self._lifespan: ThreadRun | None = None
        if registry.lifespan is not None:
            from ...lifespan import ThreadRun

            self._lifespan = ThreadRun(registry.lifespan, lambda: loop.loop, self._ended.set)
        engine = Engine(runtime, _signer)
        if task_store is not None:
            from ...tasks.service import task_service

            # Tasks of an earlier run may wait.
            task_service(runtime)
        self._connection = Connection(registry, engine, pipe.send, pipe.peer, pipe.resolve)
        self._readers = Readers(
            pipe.read_line, self._connection.receive, self._ended, max_idle=limits.threads
        )

    def run(self) -> None:
        """Serve until the client has closed its end and its requests are answered.

        An exception that a signal raises here cancels the calls, which get a second to end.
        The lifespan starts while requests are read, and ends after the last answer.
        Raises StdinUnreadable if stdin cannot be read, and LifespanFailed.
        """
        try:
            if self._lifespan is not None:
                self._lifespan.start()
            self._readers.start()
            self._ended.wait()
            self._pipe.decline_all()
            self._readers.wait_until_answered(self._pipe.is_broken)
            self._end_tasks(self._runtime.registry.limits.shutdown)
        except (KeyboardInterrupt, SystemExit):
            self._ended.set()
            self._pipe.decline_all()
            self._connection.cancel_all()
            until = monotonic() + _CANCEL_SECONDS
            self._readers.wait_until_answered(lambda: monotonic() > until)
            self._end_tasks(max(until - monotonic(), 0.0))
            self._end_lifespan()
            raise
        if (error := self._end_lifespan()) is not None:
            raise error
        if (failure := self._readers.failure) is not None:
            raise StdinUnreadable(f"cannot read stdin: {failure}") from failure

    def _end_tasks(self, seconds: float) -> None:
        """Let tasks end that are kept in a file; nobody could read the results of others."""
        tasks = self._runtime.tasks
        if tasks is not None and self._runtime.task_store is not None:
            import asyncio

            ending = asyncio.run_coroutine_threadsafe(tasks.stop(seconds), self._loop.loop)
            # A function that blocks the event loop must not keep the process.
            with suppress(TimeoutError):
                ending.result(seconds + _CANCEL_SECONDS)

    def _end_lifespan(self) -> LifespanFailed | None:
        return None if self._lifespan is None else self._lifespan.stop()


@cache
def _signer() -> Signer:
    from ...signing import signer_from_environment

    return signer_from_environment()[0]


class _LoopThread:
    """An event loop in a thread, from the first `async` tool on."""

    def run(self, steps: Coroutine[Any, Any, Any], call: Call) -> Any:
        """Run a coroutine on the loop and wait for it; cancelling the request cancels it."""
        import asyncio
        from concurrent.futures import CancelledError

        task = asyncio.run_coroutine_threadsafe(_shielded(steps), self.loop)
        stop_listening = call.peer.on_cancel(task.cancel)
        try:
            return task.result()
        except CancelledError:
            if not call.peer.cancelled:
                raise
            raise ToolError("The call was cancelled", code="CANCELLED") from None
        finally:
            stop_listening()

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        import asyncio

        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop


async def _shielded(steps: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await steps
    except (SystemExit, KeyboardInterrupt) as exc:
        # They would end the loop, and with it every other call.
        raise RuntimeError(f"the tool raised {exc!r}") from exc
