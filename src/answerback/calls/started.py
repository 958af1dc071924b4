"""Handlers of an app with a lifespan: a call runs once the lifespan has started."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ..errors import ToolError
from ..lifespan import Lifespan, LifespanFailed, SingleRun, failed, log_failure
from ..reply import Error, Reply, failure
from .call import Call, Handler, Outcome
from .handlers import Execution
from .runners import run_in_place

if TYPE_CHECKING:
    from ..tools.tool import Tool


def started(
    handle: Handler, tools: Mapping[str, Tool], lifespan: Lifespan, *, in_thread: bool
) -> Handler:
    """*handle*, which waits for the lifespan; *in_thread* on a wire without an event loop."""

    async def handle_when_started(call: Call) -> Outcome:
        is_waiting = not lifespan.is_open
        # A call of an unknown tool is refused at once.
        if is_waiting and call.name in tools:
            call.tool = tools[call.name]
            try:
                await lifespan.wait(call, in_thread=in_thread)
            except Exception as exc:
                if call.wire == "memory":
                    raise  # In memory the caller is a test or a program, and sees the cause.
                return _not_started(exc)
        return await handle(call)

    return handle_when_started


def _not_started(exc: Exception) -> Outcome:
    if isinstance(exc, ToolError) and exc.code == "CANCELLED":
        return Reply(error=Error.of(exc))
    if not isinstance(exc, LifespanFailed):
        log_failure(failed(exc, "start"))
    hint = "try again later; the log of the server says why"
    return failure("The server could not start", code="UNAVAILABLE", hint=hint)


def execution_in_lifespan(lifespan: Lifespan) -> Execution:
    """For a process that makes one call: the lifespan runs around that call."""
    run = SingleRun(lifespan)
    wait_for = partial(_in_lifespan, run)
    return Execution(
        run_in_place(run.run_async), run.run_async, is_in_place=True, wait_for=wait_for
    )


def _in_lifespan(
    run: SingleRun, handle: Handler, tools: Mapping[str, Tool], lifespan: Lifespan
) -> Handler:
    async def handle_in_lifespan(call: Call) -> Outcome:
        if call.name not in tools:
            return await handle(call)
        try:
            run.start()
        except LifespanFailed as error:
            if call.wire == "call":
                log_failure(error)
            raise
        try:
            return await handle(call)
        finally:
            run.stop()

    return handle_in_lifespan
