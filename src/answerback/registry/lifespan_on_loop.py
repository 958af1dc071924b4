"""LoopRun: one run of a lifespan on an event loop, in its own task.

Libraries such as anyio require the task that entered an async context manager to exit it too.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from typing import Any

from .lifespan import Lifespan, LifespanFailed, Managers, failed, is_async

_CANCEL_SECONDS = 1.0
"""How many seconds a cancelled lifespan may take to end."""


class LoopRun:
    """A run that starts opening immediately; `stop` closes it."""

    def __init__(self, lifespan: Lifespan, managers: Managers) -> None:
        self._lifespan = lifespan
        self.loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        # The first calls on other loops wait for it too.
        self._started: Future[None] = Future()
        self._task = self.loop.create_task(self._hold(managers), name="answerback-lifespan")

    @property
    def is_lost(self) -> bool:
        """Whether the loop has closed, or the task has ended without `stop`."""
        return self.loop.is_closed() or self._task.done()

    async def wait_until_started(self) -> None:
        # Shielded, because the start must outlive the call waiting for it.
        await asyncio.shield(asyncio.wrap_future(self._started))

    async def stop(self, seconds: float) -> None:
        """Close within *seconds*, cancelling a start still in progress; raises LifespanFailed."""
        if asyncio.get_running_loop() is not self.loop:
            if not self.is_lost:
                stopping = asyncio.run_coroutine_threadsafe(self.stop(seconds), self.loop)
                await asyncio.wrap_future(stopping)
            return
        was_started = self._started.done()
        self._ending.set()
        if not was_started:
            self._task.cancel()
        if not (await asyncio.wait({self._task}, timeout=seconds))[0]:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_CANCEL_SECONDS)
            error = LifespanFailed(f"the lifespan did not end within {seconds:g} seconds")
            error.is_hanging = not self._task.done()
            raise error
        if was_started and not self._task.cancelled() and (exc := self._task.exception()):
            raise failed(exc, "end") from exc

    async def _hold(self, managers: Managers) -> None:
        lifespan = self._lifespan
        try:
            async with AsyncExitStack() as stack:
                for each, manager in managers:
                    opened = manager if is_async(manager) else _InThread(manager)
                    each.state = await stack.enter_async_context(opened)
                    each.is_started = True
                lifespan.is_started = True
                self._started.set_result(None)
                # Cancelled because the loop is ending without `stop`: close as in any shutdown.
                with suppress(asyncio.CancelledError):
                    await self._ending.wait()
        except BaseException as exc:
            if not self._started.done():
                failure = exc
                if not isinstance(exc, Exception):
                    # Cancelled, or the author's code called exit, which must not end the loop.
                    failure = LifespanFailed(f"the lifespan did not start: {exc!r}")
                    failure.__cause__ = exc
                self._started.set_exception(failure)
            elif isinstance(exc, SystemExit | KeyboardInterrupt):
                # These would end the loop, and with it the rest of the shutdown.
                raise RuntimeError(f"the lifespan raised {exc!r}") from exc
            else:
                raise
        finally:
            lifespan.is_started = False
            for each, _ in managers:
                each.is_started = False


class _InThread:
    """A plain context manager, entered and exited in one thread outside the loop."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._opened: Future[Any] = Future()
        self._closed: Future[None] = Future()
        self._ending = threading.Event()

    async def __aenter__(self) -> Any:
        name = "answerback-lifespan"
        threading.Thread(target=self._work, name=name, daemon=True).start()
        try:
            return await asyncio.shield(asyncio.wrap_future(self._opened))
        except asyncio.CancelledError:
            self._ending.set()
            raise

    async def __aexit__(self, *exc_info: object) -> None:
        self._ending.set()
        await asyncio.shield(asyncio.wrap_future(self._closed))

    def _work(self) -> None:
        try:
            with self._manager as state:
                self._opened.set_result(state)
                self._ending.wait()
        except BaseException as exc:  # noqa: BLE001 -- raised again on the loop
            (self._closed if self._opened.done() else self._opened).set_exception(exc)
        else:
            self._closed.set_result(None)
