"""LoopThread: an event loop in a thread, for programs and wires that have none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread, started on first use of `loop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name=self._name, daemon=True
                )
                self._thread.start()
            return self._loop

    def run(self, steps: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """Wait for a coroutine on the loop; raises TimeoutError after *seconds*.

        An exception in the waiting thread, such as Ctrl-C, cancels the coroutine.
        """
        loop = self.loop
        if loop.is_closed():
            steps.close()
            raise RuntimeError("the event loop was closed")
        import asyncio

        future = asyncio.run_coroutine_threadsafe(_without_exit(steps), loop)
        try:
            return future.result(seconds)
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop and its thread."""
        loop = self.loop
        if loop.is_closed():
            return
        self.run(loop.shutdown_default_executor())
        loop.call_soon_threadsafe(loop.stop)
        assert self._thread is not None
        self._thread.join()
        loop.close()


class GivenLoop(LoopThread):
    """The running event loop of a program that awaits `app.run_async`.

    A wire runs in another thread, and its coroutines run here.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__("")
        self._loop = loop
        self._stop: Callable[[], object] | None = None
        self._is_stopped = False

    def on_stop(self, stop: Callable[[], object]) -> None:
        """Let `stop` end the wire by calling *stop*; call it now if `stop` was already called."""
        self._stop = stop
        if self._is_stopped:
            stop()

    def stop(self) -> bool:
        """End the wire; return False if there is no wire yet, or it cannot be ended."""
        self._is_stopped = True
        if self._stop is not None:
            self._stop()
        return self._stop is not None


async def _without_exit(steps: Coroutine[Any, Any, T]) -> T:
    try:
        return await steps
    except (SystemExit, KeyboardInterrupt) as exc:
        # These would end the loop, and with it every other call.
        raise RuntimeError(f"the tool raised {exc!r}") from exc
