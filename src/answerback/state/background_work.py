"""BackgroundWork: a thread that calls one function when it is woken, and from time to time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

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
        self._end = threading.Event()
        """Set when the present thread should end."""
        self._runs = False

    @property
    def is_closed(self) -> bool:
        return self._end.is_set()

    def open(self) -> None:
        """Allow a thread again after `close`."""
        if self.is_closed:
            self._forget()

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
                work = partial(self._run, self._woken, self._end)
                threading.Thread(target=work, name=self._name, daemon=True).start()
                self._runs = True

    def close(self) -> None:
        """Call the function once more, if the thread runs, and end the thread."""
        self._end.set()
        self._woken.set()

    def _run(self, woken: threading.Event, end: threading.Event) -> None:
        while not end.is_set():
            woken.clear()
            self._call()
            woken.wait(self._seconds)
        self._call()

    def _call(self) -> None:
        try:
            self._work()
        except Exception:  # noqa: BLE001 -- the thread must go on
            logger().exception("internal error in the thread %s", self._name)
