"""LoopThread: an event loop in a thread, for programs and wires that have none."""

from __future__ import annotations

import os
import threading
from collections import deque
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
        self._posted: deque[Callable[[asyncio.AbstractEventLoop], object]] = deque()
        self._pipe: tuple[int, int] | None = None
        """Wakes the loop for posted callbacks."""
        self._is_awake = False

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

    def post(self, callback: Callable[[asyncio.AbstractEventLoop], object]) -> None:
        """Call *callback* with the loop, on the loop. May be called from any thread.

        Many callbacks share one wake-up. `call_soon_threadsafe` takes more CPU time, because it
        wakes the loop for each of them, through a socket.
        """
        if os.name == "nt":  # The event loop on Windows cannot read from a pipe.
            self.loop.call_soon_threadsafe(callback, self.loop)
            return
        _, wake = self._pipe or self._open_pipe()
        self._posted.append(callback)
        if not self._is_awake:
            self._is_awake = True
            os.write(wake, b"\0")

    def _open_pipe(self) -> tuple[int, int]:
        loop = self.loop
        with self._lock:
            if self._pipe is None:
                self._pipe = os.pipe()
                loop.call_soon_threadsafe(self._watch_pipe, loop)
            return self._pipe

    def _watch_pipe(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._pipe is not None
        loop.add_reader(self._pipe[0], self._call_posted, loop)
        # The pipe was opened to post the first callback, which needs no wake-up.
        self._call_posted(loop)

    def _call_posted(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._pipe is not None
        os.read(self._pipe[0], 4096)
        # Reset first, so that a callback posted from now on wakes the loop again.
        self._is_awake = False
        while self._posted:
            self._posted.popleft()(loop)

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
        for fd in self._pipe or ():
            os.close(fd)


class GivenLoop(LoopThread):
    """The running event loop of a program that awaits `app.run_async`.

    A wire runs in another thread, and its coroutines run here.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__("")
        self._loop = loop
        self._stop: Callable[[], object] | None = None
        self._is_stopped = False

    def post(self, callback: Callable[[asyncio.AbstractEventLoop], object]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(callback, self._loop)

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
