"""Lifespan: opens what the tools of an app need before the first call, and closes it at the end.

Each wire starts and stops it. In a process it opens with the first wire and closes with the last:

- on an event loop `start` and `stop`; the first call starts it if nothing else did
- on threads without a loop `ThreadRun`, which opens while other requests are answered
- around one call `SingleRun`

An async context manager is entered and left in one task. A plain one is entered and left in one
thread, and starts no event loop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import AnswerbackError, ToolError
from .tools.signature import is_generator, required_parameters, source_of

if TYPE_CHECKING:
    import asyncio

    from .lifespan_on_loop import LoopRun
    from .registry import Registry

LifespanFunction: TypeAlias = Callable[
    ..., AbstractContextManager[Any] | AbstractAsyncContextManager[Any]
]
Managers: TypeAlias = "list[tuple[Lifespan, Any]]"
"""The context managers of one run, in the order in which they are entered."""

_FUTURES = os.path.join(os.path.dirname(threading.__file__), "concurrent")
_MOUNTED = (
    "the lifespan of app %r starts at its first call, because the host does not run it; "
    "give the host's application lifespan=app.lifespan"
)


class LifespanFailed(AnswerbackError):
    """The lifespan raised at its start or at its end; the cause is what it raised."""

    code = "LIFESPAN_FAILED"
    is_hanging = False
    """Whether its end was given up, although it still runs."""


class Lifespan:
    """The context manager function of an app, and what it yielded: `state`."""

    def __init__(
        self, function: LifespanFunction | None, registry: Registry, app: object = None
    ) -> None:
        """*function* may take *app*, the App of *registry*."""
        self._registry = registry
        self._app = app
        self._function = function
        self._takes_app = function is not None and _takes_app(function)
        self.included: list[Lifespan] = []
        """The lifespans of included apps; they start before this one and end after it."""
        self.state: Any = None
        self.is_started = False
        self.thread_run: ThreadRun | None = None
        """Set by a wire without an event loop."""
        self._loop_run: LoopRun | None = None
        self._holders: set[object] = set()
        """The wires and blocks that keep it open."""
        self.lock = threading.Lock()

    @asynccontextmanager
    async def __call__(self, host: object = None) -> AsyncIterator[None]:
        """Start it and stop it around the host's application: `FastAPI(lifespan=app.lifespan)`."""
        holder = object()
        await self.start(holder)
        try:
            yield
        finally:
            await self.stop(holder)

    async def start(self, holder: object) -> None:
        """Start it on the running loop, unless it runs; it stays open until *holder* stops it.

        Raises what the context manager raised.
        """
        self.hold(holder)
        try:
            await self.open()
        except BaseException:
            self._holders.discard(holder)
            raise

    async def open(self, managers: Managers | None = None) -> None:
        """Open it on the running loop, unless it runs; for a caller that does not keep it open."""
        from .lifespan_on_loop import LoopRun

        with self.lock:
            if self.is_open:
                return
            threads = None if managers else self._running_threads
            if threads is None and not self.has_loop_run:
                self._loop_run = LoopRun(self, managers or self.managers())
            run = self._loop_run
        if threads is not None:
            import asyncio

            await asyncio.to_thread(threads.wait, lambda: False)
        elif run is not None:
            await run.wait_until_started()

    def hold(self, holder: object) -> None:
        """Keep it open until *holder* lets it go."""
        with self.lock:
            self._holders.add(holder)

    def let_go(self, holder: object) -> bool:
        """Let it go; True if *holder* was the last that kept it open."""
        with self.lock:
            self._holders.discard(holder)
            return not self._holders

    @property
    def is_open(self) -> bool:
        return self.is_started and not self.is_lost

    @property
    def has_loop_run(self) -> bool:
        """Whether it is open on an event loop, or opens there."""
        return self._loop_run is not None and not self._loop_run.is_lost

    @property
    def _running_threads(self) -> ThreadRun | None:
        found = self.thread_run
        return found if found is not None and found.is_running else None

    @property
    def is_lost(self) -> bool:
        """Whether it was started on a loop that has closed since."""
        return self._loop_run is not None and self._loop_run.is_lost

    async def stop(self, holder: object) -> None:
        """Close it, if *holder* is the last; raises LifespanFailed if that fails or is too slow."""
        is_last, threads = self.let_go(holder), self._running_threads
        if is_last and threads is None:
            await self.close()
        elif is_last and threads is not None:
            import asyncio

            if (failure := await asyncio.to_thread(threads.close)) is not None:
                raise failure

    async def close(self) -> None:
        """Close what was opened on an event loop."""
        run, self._loop_run = self._loop_run, None
        if run is not None:
            await run.stop(self.seconds)

    async def try_to_start(self, holder: object) -> LifespanFailed | None:
        """Start it for a server; a failure is logged and returned."""
        try:
            await self.start(holder)
        except Exception as exc:  # noqa: BLE001 -- the author's code may raise anything
            error = exc if isinstance(exc, LifespanFailed) else failed(exc, "start")
            log_failure(error)
            return error
        return None

    async def try_to_stop(self, holder: object) -> LifespanFailed | None:
        """Stop it for a server; a failure is logged and returned."""
        try:
            await self.stop(holder)
        except LifespanFailed as error:
            log_failure(error)
            return error
        return None

    async def wait(self, call: Any, *, in_thread: bool) -> None:
        """Wait until a call can run, *in_thread* without an event loop; the first call opens."""
        if in_thread and self.thread_run is not None:
            self.thread_run.wait(lambda: call.peer.cancelled)
            return
        if call.wire != "memory" and self._loop_run is None and not self._holders:
            import logging

            logging.getLogger("answerback").warning(_MOUNTED, self._registry.name)
        await self.open()

    @property
    def seconds(self) -> float:
        """The time that it gets to end."""
        return self._registry.limits.shutdown

    def managers(self) -> Managers:
        """New context managers: those of the included apps that do not run yet, then its own."""
        included = [each for each in self.included if not each.is_started or each.is_lost]
        found = [pair for each in included for pair in each.managers()]
        if self._function is not None:
            found.append((self, self._manager(self._function)))
        return list({id(lifespan): (lifespan, manager) for lifespan, manager in found}.values())

    def _manager(self, function: LifespanFunction) -> Any:
        manager = function(self._app) if self._takes_app else function()
        if not is_async(manager) and not hasattr(type(manager), "__enter__"):
            raise TypeError(
                f"the lifespan returned {type(manager).__name__}, not a context manager; "
                "decorate it with contextlib.asynccontextmanager or contextlib.contextmanager"
            )
        return manager


def is_async(manager: Any) -> bool:
    return hasattr(type(manager), "__aenter__")


def _takes_app(function: Any) -> bool:
    """Whether the function takes the app; raises TypeError if it cannot be a lifespan."""
    kind = type(function)
    if not callable(function) or is_async(function) or hasattr(kind, "__enter__"):
        raise TypeError(f"lifespan is a {kind.__name__} object; give the function itself")
    if isinstance(function, FunctionType) and is_generator(function):
        raise TypeError(
            f"lifespan {function.__name__!r} is a generator; decorate it with "
            "contextlib.asynccontextmanager or contextlib.contextmanager"
        )
    called: Any = function
    if isinstance(function, type):
        called = function.__init__  # type: ignore[misc]  # of the class that the author gave
        if not isinstance(called, FunctionType):
            return False
    names = required_parameters(source_of(called))
    names = names[1:] if isinstance(function, type) else names
    if len(names) > 1:
        raise TypeError(f"the lifespan takes {names}; it is given the app, or nothing")
    return bool(names)


def failed(exc: BaseException, when: str) -> LifespanFailed:
    """The error that ends the server; it names the exception."""
    text = f"{type(exc).__name__}: {exc}".rstrip(": ")
    error = LifespanFailed(f"the lifespan failed at its {when}: {text}")
    error.__cause__ = exc
    return error


def log_failure(error: LifespanFailed) -> None:
    """Log the failure with the traceback of the author's code."""
    import logging

    cause = error.__cause__
    if cause is None:
        logging.getLogger("answerback").error("%s", error)
        return
    shown = (type(cause), cause, _of_author(cause.__traceback__))
    logging.getLogger("answerback").error("the lifespan failed", exc_info=shown)


def _of_author(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the author's first frame on; those before it are ours and contextlib's."""
    first = traceback
    hidden = (os.path.dirname(__file__), contextmanager.__code__.co_filename, _FUTURES)
    while first is not None and first.tb_frame.f_code.co_filename.startswith(hidden):
        first = first.tb_next
    return first or traceback


class ThreadRun:
    """Runs a lifespan beside threads that serve without an event loop.

    *get_loop* starts the loop of the async tools, for an async context manager. *on_failure* is
    called if the start fails.
    """

    def __init__(
        self,
        lifespan: Lifespan,
        get_loop: Callable[[], asyncio.AbstractEventLoop],
        on_failure: Callable[[], None],
    ) -> None:
        self._lifespan = lifespan
        self._get_loop = get_loop
        self._on_failure = on_failure
        self._started = threading.Event()
        self._ending = threading.Event()
        self._ended = threading.Event()
        self.failure: LifespanFailed | None = None
        self.is_running = False
        """Whether it opened the lifespan itself; another wire may have done so."""
        self._cancel_start: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Begin to open, unless it runs; other requests are answered meanwhile."""
        self._lifespan.hold(self)
        self._lifespan.thread_run = self
        self._open()

    def _open(self) -> None:
        lifespan = self._lifespan
        with lifespan.lock:
            is_opened = lifespan.is_open or lifespan.has_loop_run or self.is_running
            if is_opened or self._started.is_set():
                return
            self.is_running = True
        threading.Thread(target=self._work, name="answerback-lifespan", daemon=True).start()

    def wait(self, is_cancelled: Callable[[], bool]) -> None:
        """Block until the lifespan has started; raises LifespanFailed if it could not.

        Raises ToolError if the client stops to wait for the call.
        """
        while not (self._lifespan.is_open or self._started.wait(0.05) or is_cancelled()):
            # The event loop of another wire may end before it has opened.
            self._open()
        if is_cancelled():
            raise ToolError("The call was cancelled", code="CANCELLED")
        if not self._lifespan.is_open:
            raise self.failure or LifespanFailed("the server is shutting down")

    def stop(self) -> LifespanFailed | None:
        """Close, unless another wire keeps it open; returns the failure."""
        if self._lifespan.has_loop_run and not self.is_running:
            import asyncio

            return asyncio.run(self._lifespan.try_to_stop(self))
        is_last = self._lifespan.let_go(self)
        return self.close() if is_last and self.is_running else self.failure

    def close(self) -> LifespanFailed | None:
        """Close, for as long as the lifespan may take; returns the failure."""
        self._ending.set()
        if not self._started.is_set():
            self._cancel_start()
        seconds = self._lifespan.seconds
        # A second more, because the event loop has the same time-out and tells more.
        if not self._ended.wait(seconds + 1.0):
            self.failure = LifespanFailed(f"the lifespan did not end within {seconds:g} seconds")
            log_failure(self.failure)
        return self.failure

    def _work(self) -> None:
        try:
            managers = self._lifespan.managers()
            if any(is_async(manager) for _, manager in managers):
                self._run_on_loop(managers)
            else:
                self._run_here(managers)
        except BaseException as exc:  # noqa: BLE001 -- reported by the thread that serves
            self._report(exc)
        finally:
            self._lifespan.is_started = self.is_running = False
            self._started.set()
            self._ended.set()

    def _report(self, exc: BaseException) -> None:
        was_started = self._started.is_set()
        if not was_started and self._ending.is_set():
            return  # The start was cancelled.
        when = "end" if was_started else "start"
        self.failure = exc if isinstance(exc, LifespanFailed) else failed(exc, when)
        log_failure(self.failure)
        if not was_started:
            self._on_failure()

    def _run_here(self, managers: Managers) -> None:
        with entered(managers):
            self._serve()

    def _run_on_loop(self, managers: Managers) -> None:
        import asyncio

        loop = self._get_loop()
        starting = asyncio.run_coroutine_threadsafe(self._lifespan.open(managers), loop)
        self._cancel_start = starting.cancel
        if self._ending.is_set():
            starting.cancel()
        try:
            starting.result()
            self._serve()
        finally:
            asyncio.run_coroutine_threadsafe(self._lifespan.close(), loop).result()

    def _serve(self) -> None:
        self._lifespan.is_started = True
        self._started.set()
        self._ending.wait()


@contextmanager
def entered(managers: Managers) -> Iterator[None]:
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
    """Ends a plain lifespan that takes too long; an author's `except Exception` lets it pass."""


@contextmanager
def _raise_after(seconds: float) -> Iterator[None]:
    """Raise _TooLate in the block after *seconds*, and each second from then on.

    By a signal, because the block runs in the thread that opened the lifespan. Without such a
    signal, as on Windows and outside of the main thread, the block may take as long as it likes.
    """
    # The module behind `signal`, whose import takes a millisecond of each call.
    import _signal as signal  # type: ignore[import-not-found]  # typeshed lacks it

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


class SingleRun:
    """Runs a lifespan around one call in a process that serves nothing else.

    Async tools and an async lifespan share one event loop.
    """

    def __init__(self, lifespan: Lifespan) -> None:
        self._lifespan = lifespan
        self._stack = ExitStack()
        self._runner: asyncio.Runner | None = None

    def start(self) -> None:
        """Open; raises LifespanFailed."""
        try:
            managers = self._lifespan.managers()
            if any(is_async(manager) for _, manager in managers):
                self.run_async(self._lifespan.open(managers))
            else:
                self._stack.enter_context(entered(managers))
            # A tool may call others by itself.
            self._lifespan.is_started = True
        except Exception as exc:
            self._close_loop()
            raise failed(exc, "start") from exc

    def run_async(self, steps: Coroutine[Any, Any, Any], call: Any = None) -> Any:
        """Run a coroutine on the loop of this call."""
        import asyncio
        from contextvars import copy_context

        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(steps, context=copy_context())

    def stop(self) -> None:
        """Close, within its time. A failure is logged: the call has its reply already."""
        seconds = self._lifespan.seconds
        try:
            if self._runner is not None:
                self.run_async(self._lifespan.close())
            with _raise_after(seconds):
                self._stack.close()
        except LifespanFailed as error:
            log_failure(error)
            if error.is_hanging:
                # Closing the loop would wait for it.
                self._runner = None
        except _TooLate:
            log_failure(LifespanFailed(f"the lifespan did not end within {seconds:g} seconds"))
        except Exception as exc:  # noqa: BLE001 -- the author's code may raise anything
            log_failure(failed(exc, "end"))
        finally:
            self._lifespan.is_started = False
            self._close_loop()

    def _close_loop(self) -> None:
        if self._runner is not None:
            self._runner.close()
