"""Lifespan: opens an app's resources before the first call, and closes them at the end.

Each serving wire starts and stops it. In each process, it opens on the first wire's event loop
and closes with the last wire; the first call opens it if nothing else has. In a one-call process it
wraps that call: see `calls/started.py`.

An async context manager is entered and exited in one task, and a plain one in one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.log import logger
from ..errors import AnswerbackError
from ..tools.callable_source import is_generator, required_parameters, source_of

if TYPE_CHECKING:
    from .declarations import Registry
    from .lifespan_on_loop import LoopRun

LifespanFunction: TypeAlias = Callable[
    ..., AbstractContextManager[Any] | AbstractAsyncContextManager[Any]
]
Managers: TypeAlias = "list[tuple[Lifespan, Any]]"
"""The context managers of one run, in the order they are entered."""

_FUTURES = os.path.join(os.path.dirname(threading.__file__), "concurrent")
_MOUNTED = (
    "the lifespan of app %r starts at its first call, because the host does not run it; "
    "pass lifespan=app.lifespan to the host's application"
)


class LifespanFailed(AnswerbackError):
    """The lifespan raised an exception when starting or ending; that exception is the cause."""

    code = "LIFESPAN_FAILED"
    is_hanging = False
    """True if we stopped waiting for it to end while it was still running."""


class Lifespan:
    """An app's context manager function, and the value it yielded: `state`."""

    def __init__(
        self, function: LifespanFunction | None, registry: Registry, app: object = None
    ) -> None:
        """*function* may accept *app*, the App that *registry* belongs to."""
        self._registry = registry
        self._app = app
        self._function = function
        self._takes_app = function is not None and _takes_app(function)
        self.included: list[Lifespan] = []
        """The lifespans of included apps; they start before this one and end after it."""
        self.state: Any = None
        self.is_started = False
        self.is_reported = False
        """Whether a server starts it and logs its failures."""
        self._loop_run: LoopRun | None = None
        self._holders: set[object] = set()
        """The wires and blocks that keep it open."""
        self._lock = threading.Lock()

    @asynccontextmanager
    async def __call__(self, host: object = None) -> AsyncIterator[None]:
        """Run it as the lifespan of a host application: `FastAPI(lifespan=app.lifespan)`."""
        holder = object()
        await self.start(holder)
        try:
            yield
        finally:
            await self.stop(holder)

    async def start(self, holder: object) -> None:
        """Open it unless it is already open; it stays open until *holder* stops it.

        Raises the exception that the context manager raised.
        """
        with self._lock:
            self._holders.add(holder)
        try:
            await self.open()
        except BaseException:
            self._release(holder)
            raise

    async def open(self, managers: Managers | None = None) -> None:
        """Open it on the running loop unless already open; the caller does not keep it open."""
        from .lifespan_on_loop import LoopRun

        with self._lock:
            if self.is_open:
                return
            if self._loop_run is None or self._loop_run.is_lost:
                self._loop_run = LoopRun(self, managers or self.managers())
            run = self._loop_run
        await run.wait_until_started()

    @property
    def is_open(self) -> bool:
        return self.is_started and not self.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the loop it was started on has closed."""
        return self._loop_run is not None and self._loop_run.is_lost

    async def stop(self, holder: object) -> None:
        """Close it if *holder* is the last one; raises LifespanFailed on failure or timeout."""
        if self._release(holder):
            run, self._loop_run = self._loop_run, None
            if run is not None:
                await run.stop(self.seconds)

    def _release(self, holder: object) -> bool:
        """Forget *holder*; return True if nothing keeps the lifespan open any longer."""
        with self._lock:
            self._holders.discard(holder)
            return not self._holders

    async def try_to_start(self, holder: object) -> LifespanFailed | None:
        """Start it for a server; if that fails, log and return the error."""
        self.is_reported = True
        try:
            await self.start(holder)
        except Exception as exc:  # noqa: BLE001 -- the author's code may raise anything
            if self._loop_run is None:
                return None  # The server is shutting down, and `stop` has cancelled the start.
            error = exc if isinstance(exc, LifespanFailed) else failed(exc, "start")
            log_failure(error)
            return error
        return None

    async def try_to_stop(self, holder: object) -> LifespanFailed | None:
        """Stop it for a server; if that fails, log and return the error."""
        try:
            await self.stop(holder)
        except LifespanFailed as error:
            log_failure(error)
            return error
        return None

    async def wait(self, wire: str) -> None:
        """Wait until a call over *wire* can run. If no server starts the lifespan, open it."""
        if wire != "memory" and self._loop_run is None and not self._holders:
            logger().warning(_MOUNTED, self._registry.name)
        await self.open()

    @property
    def seconds(self) -> float:
        """How many seconds it may take to end."""
        return self._registry.limits.shutdown

    def managers(self) -> Managers:
        """Return new context managers: first for included apps not yet running, then its own."""
        included = [each for each in self.included if not each.is_open]
        found = [pair for each in included for pair in each.managers()]
        if self._function is not None:
            manager = self._function(self._app) if self._takes_app else self._function()
            if not is_async(manager) and not hasattr(type(manager), "__enter__"):
                raise TypeError(
                    f"the lifespan returned {type(manager).__name__}, not a context manager; "
                    "decorate it with contextlib.asynccontextmanager or contextlib.contextmanager"
                )
            found.append((self, manager))
        return list({id(lifespan): (lifespan, manager) for lifespan, manager in found}.values())


def is_async(manager: object) -> bool:
    return hasattr(type(manager), "__aenter__")


def _takes_app(function: Any) -> bool:
    """Return whether the function accepts the app; raises TypeError if it cannot be a lifespan."""
    kind = type(function)
    if not callable(function) or is_async(function) or hasattr(kind, "__enter__"):
        raise TypeError(f"lifespan is a {kind.__name__} object; pass the function itself")
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
        raise TypeError(f"the lifespan takes {names}; it should take the app, or nothing")
    return bool(names)


def failed(exc: BaseException, when: str) -> LifespanFailed:
    """Return the error that stops the server; it names the exception."""
    text = f"{type(exc).__name__}: {exc}".rstrip(": ")
    error = LifespanFailed(f"the lifespan failed to {when}: {text}")
    error.__cause__ = exc
    return error


def log_failure(error: LifespanFailed) -> None:
    """Log the failure with the traceback of the author's code."""
    cause = error.__cause__
    if cause is None:
        logger().error("%s", error)
        return
    # Start at the author's first frame, skipping ours and contextlib's.
    first = cause.__traceback__
    hidden = (os.path.dirname(__file__), contextmanager.__code__.co_filename, _FUTURES)
    while first is not None and first.tb_frame.f_code.co_filename.startswith(hidden):
        first = first.tb_next
    shown = (type(cause), cause, first or cause.__traceback__)
    logger().error("the lifespan failed", exc_info=shown)
