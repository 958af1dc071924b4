"""Handlers for an app with a lifespan: a call runs once the lifespan has started."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # Not in typeshed; `signal` is slow.
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from ..core.reply import failure
from ..registry.lifespan import Lifespan, LifespanFailed, Managers, failed, is_async, log_failure
from ..tools.tool import Tool
from .call import Call, Handler, Outcome
from .runners import with_loop


def started(handle: Handler, tools: Mapping[str, Tool], lifespan: Lifespan) -> Handler:
    """Return *handle*, wrapped to wait for the lifespan."""

    async def handle_when_started(call: Call) -> Outcome:
        is_waiting = not lifespan.is_open
        # A call to an unknown tool is refused at once.
        if is_waiting and call.name in tools:
            call.tool = tools[call.name]
            try:
                await with_loop(lifespan.wait(call.wire))
            except Exception as exc:
                if call.wire == "memory":
                    raise  # In memory, the caller is a test or a program, and may see the cause.
                if not (lifespan.is_reported or isinstance(exc, LifespanFailed)):
                    log_failure(failed(exc, "start"))
                hint = "try again later; the server's log says why"
                return failure("The server could not start", code="UNAVAILABLE", hint=hint)
        return await handle(call)

    return handle_when_started


def in_lifespan(handle: Handler, tools: Mapping[str, Tool], lifespan: Lifespan) -> Handler:
    """Return *handle* for a one-call process: the lifespan runs around the call."""

    async def handle_in_lifespan(call: Call) -> Outcome:
        if call.name not in tools:
            return await handle(call)
        try:
            close = await _open(lifespan, call)
        except Exception as exc:
            error = failed(exc, "start")
            if call.wire == "call":
                log_failure(error)
            raise error from exc
        try:
            return await handle(call)
        finally:
            await close()

    return handle_in_lifespan


async def _open(lifespan: Lifespan, call: Call) -> Callable[[], Awaitable[object]]:
    """Open the lifespan; return the function that closes it."""
    managers = lifespan.managers()
    if any(is_async(manager) for _, manager in managers):
        await with_loop(lifespan.open(managers))
        return partial(lifespan.try_to_stop, call)
    stack = ExitStack()
    stack.enter_context(_entered(managers))
    # A tool may call other tools.
    lifespan.is_started = True
    return partial(_close, lifespan, stack)


async def _close(lifespan: Lifespan, stack: ExitStack) -> None:
    """Close a plain lifespan within its time limit; a failure is only logged."""
    seconds = lifespan.seconds
    try:
        with _raise_after(seconds):
            stack.close()
    except _TooLate:
        log_failure(LifespanFailed(f"the lifespan did not end within {seconds:g} seconds"))
    except Exception as exc:  # noqa: BLE001 -- the author's code may raise anything
        log_failure(failed(exc, "end"))
    finally:
        lifespan.is_started = False


@contextmanager
def _entered(managers: Managers) -> Iterator[None]:
    """Enter plain context managers, and set the state of each lifespan."""
    try:
        with ExitStack() as stack:
            for lifespan, manager in managers:
                lifespan.state = stack.enter_context(manager)
                lifespan.is_started = True
            yield
    finally:
        for lifespan, _ in managers:
            lifespan.is_started = False


class _TooLate(BaseException):
    """Ends a plain lifespan that takes too long, despite an author's `except Exception`."""


@contextmanager
def _raise_after(seconds: float) -> Iterator[None]:
    """Raise _TooLate in the block after *seconds*, and every second after that.

    It uses a signal, because the block runs in the thread that opened the lifespan. Where signals
    are unavailable, as on Windows and outside the main thread, the block has no time limit.
    """

    def expire(*_: object) -> None:
        raise _TooLate

    try:
        before = signal.signal(signal.SIGALRM, expire)
    except (AttributeError, ValueError):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
