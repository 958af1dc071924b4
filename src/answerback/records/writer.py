"""Writes events to one sink, in a thread of its own, whatever the sink does."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Generic, TypeVar

from .chain import Chain
from .event import ENDED, LOST, STARTED, Event
from .queue import Queue, Taken
from .sink import Entry, Sink, Store

T = TypeVar("T")

BATCH = 250
LINGER = 0.2
MOST_BYTES = 64 * 1024 * 1024
END_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_FULL = "there was no room left to wait in"


class Writer(Generic[T]):
    """Its thread and the sink's file are of the process that first has something to write."""

    def __init__(self, sink: Sink, make: Callable[[T], Event], most: int) -> None:
        self._sink = sink
        self._make = make
        self._most = most
        self._begin()
        _WRITERS.add(self)

    def _begin(self) -> None:
        """As if nothing had been written yet: so it is in a process that was just forked."""
        self._queue: Queue[T] = Queue(self._most, MOST_BYTES, batch=BATCH, linger=LINGER)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._writing = 0
        self._told = ""

    def put(self, item: T, weight: int) -> None:
        """Leave it to be written; never waits for the sink."""
        if self._thread is None:
            self._start()
        self._queue.put(item, weight)

    def flush(self, seconds: float = END_SECONDS) -> bool:
        """Wait until all that was put is written; False if it is not by then."""
        if self._thread is None:
            return True
        flushed = threading.Event()
        self._queue.hurry(flushed)
        return flushed.wait(seconds)

    def close(self, seconds: float = END_SECONDS) -> None:
        """Write what there is and end the chain; what cannot be written in time is told."""
        thread = self._thread
        if thread is None:
            return
        self._ending = True
        self._queue.hurry()
        thread.join(seconds)
        lost = self._writing + len(self._queue) + self._queue.lost
        if lost:
            _log().error("%d records were lost: %s", lost, self._told or f"{self._sink} hangs")
        import atexit

        atexit.unregister(self.close)
        self._begin()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="answerback-records", daemon=True)
            with suppress(RuntimeError):  # The process is ending: nothing starts any more.
                thread.start()
                self._thread = thread
                import atexit

                atexit.register(self.close)

    def _run(self) -> None:
        """The queue is looked up once: a thread that hangs past the end keeps to its own."""
        queue = self._queue
        pen = _Pen(self._sink)
        while True:
            taken = queue.take()
            ending = self._ending
            for start in range(0, len(taken.items) or 1, BATCH):
                items = taken.items[start : start + BATCH]
                lost = 0 if start else taken.lost
                self._writing = len(taken.items) - start
                if not self._write(pen, items, lost):
                    queue.lose(len(taken.items) - start + lost)
                    break
            self._writing = 0
            for flushed in taken.flushed:
                flushed.set()
            if ending and not len(queue):
                pen.end()
                return

    def _write(self, pen: _Pen, items: list[T], lost: int) -> bool:
        """Write until it is written, or time to end."""
        pause = _FIRST_PAUSE
        while True:
            try:
                pen.write(self._events(items, lost))
            except Exception as exc:  # noqa: BLE001 -- whatever ails a sink, the calls go on
                self._tell(f"{self._sink}: {type(exc).__name__}: {exc}")
                if self._ending:
                    return False
                self._queue.pause(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                self._recovered()
                return True
