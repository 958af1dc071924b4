"""BackgroundWork: a thread that calls one function when it is woken, and from time to time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ..core.log import logger


class BackgroundWork:
    """Calls *work* every *seconds*, and soon after `wake`. A forked child starts its own thread."""

    def __init__(self, name: str, work: Callable[[], None], seconds: float) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._forget()

    def _forget(self) -> None:
        """Start without a thread: a forked child has none of its parent's."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._runs = False
        self.is_closed = False

    def wake(self) -> None:
        """Call the function soon; the first time, this starts the thread."""
        if self._pid != os.getpid():
            self._forget()
        self._woken.set()
        if not self._runs:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if not self._runs and not self.is_closed:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._runs = True

    def close(self) -> None:
        """Call the function once more, if the thread runs, and end the thread."""
        self.is_closed = True
        self._woken.set()

    def _run(self) -> None:
        while not self.is_closed:
            self._woken.clear()
            self._call()
            self._woken.wait(self._seconds)
        self._call()

    def _call(self) -> None:
        try:
            self._work()
        except Exception:  # noqa: BLE001 -- the thread must go on
            logger().exception("internal error in the thread %s", self._name)
