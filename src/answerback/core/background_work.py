"""BackgroundWork: a thread that calls one function again and again, for as long as it is needed.

Each piece of work has a thread of its own, because none may wait for another: calls wait for the
limits that processes share, and those are counted as long as calls arrive; expired replies must
be removed, and notices sent, while a database or a file is slow. For the same reason, two others
do not use this class. Records (`records/writer.py`) call authors' sinks, which may hang; the task
watch (`tasks/task_runner.py`) must renew claims before they expire, whatever else is slow.

`after_fork` resets what a forked child does not have: its parent's threads, and their locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import cast
from weakref import WeakKeyDictionary

from .log import logger


class BackgroundWork:
    """Calls *work* every *seconds*, and soon after `wake`; with None, only after `wake`.

    A forked child starts its own thread.
    """

    def __init__(self, name: str, work: Callable[[], None], seconds: float | None) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self.is_closed = False
        self._forget()
        after_fork(self._forget)

    def _forget(self) -> None:
        """Start without a thread: a forked child does not have its parent's."""
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._end = threading.Event()
        """Set when the current thread should end."""
        self._runs = False

    def open(self) -> None:
        """Allow a thread to start again after `close`."""
        if self.is_closed:
            self.is_closed = False
            self._forget()

    def wake(self) -> None:
        """Call the function soon; the first call starts the thread."""
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
        self.is_closed = True
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


_RESETS: WeakKeyDictionary[object, Callable[[object], None]] = WeakKeyDictionary()


def after_fork(reset: Callable[[], None]) -> None:
    """Call a method in each forked child, before anything else runs there."""
    method = cast("MethodType", reset)
    _RESETS[method.__self__] = method.__func__


def _reset_all() -> None:
    for owner, reset in list(_RESETS.items()):
        reset(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
