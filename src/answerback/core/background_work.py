"""BackgroundWork: a thread that calls one function again and again, for as long as it is needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

from .log import logger


class BackgroundWork:
    """Calls *work* every *seconds*, and soon after `wake`. A forked child starts its own thread."""

    def __init__(self, name: str, work: Callable[[], None], seconds: float) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._forget()

    def _forget(self) -> None:
        """Start without a thread: a forked child does not have its parent's."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._end = threading.Event()
        """Set when the current thread should end."""
        self._runs = False

    @property
    def is_closed(self) -> bool:
        return self._end.is_set()

    def open(self) -> None:
        """Allow a thread to start again after `close`."""
        if self.is_closed:
            self._forget()

    def wake(self) -> None:
        """Call the function soon; the first call starts the thread."""
        if self._pid != os.getpid():
            self._forget()
        self._woken.set()
        if not self._runs:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if not self._runs and not self.is_closed:
                work = partial(self._run, self._woken, self._end)
                threading.Thread(target=work, name=self._name, daemon=True).start()
                self._runs = True

    def close(self) -> None:
        """Call the function once more, if the thread is running, and end the thread."""
        self._end.set()
        self._woken.set()

    def _run(self, woken: threading.Event, end: threading.Event) -> None:
        while True:
            woken.clear()
            is_last = end.is_set()
            try:
                self._work()
            except Exception:  # noqa: BLE001 -- the thread must keep running
                logger().exception("internal error in thread %s", self._name)
            if is_last:
                return
            woken.wait(self._seconds)
