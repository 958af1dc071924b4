"""Writes events to one sink, in a thread of its own, whatever the sink does."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any, Generic, TypeAlias, TypeVar

from .event import Event
from .hash_chain import LeftBehind, Pen
from .place import FileMoved
from .queue import Queue, Taken
from .sink import Sink

T = TypeVar("T")
Make: TypeAlias = Callable[[T, bool], Event]
"""Makes an event of an item; it is told whether there is a hurry."""

BATCH = 1024
LINGER = 0.2
MOST_BYTES = 64 * 1024 * 1024
END_SECONDS = 5.0
# Those who answer calls wait for the interpreter no longer than so many records take.
_AT_A_STRETCH = 128
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Writer(Generic[T]):
    """Its thread and the sink's file are of the process that first has something to write."""

    def __init__(self, sink: Sink, make: Make[T], most: int) -> None:
        self.sink = sink
        self._make = make
        self._most = most
        self._lock = threading.Lock()
        self._run: _Run[T] | None = None
        _WRITERS.add(self)

    def put(self, item: T, weight: int) -> None:
        """Leave it to be written; never waits for the sink."""
        (self._run or self._start()).put(item, weight)

    def flush(self, seconds: float = END_SECONDS) -> bool:
        """Wait until all that was put is written; False if it is not by then."""
        run = self._run
        return run is None or run.flush(seconds)

    def close(self, seconds: float = END_SECONDS) -> None:
        """Write what there is and end the chain; what cannot be written in time is told."""
        run, self._run = self._run, None
        if run is not None:
            import atexit

            atexit.unregister(self.close)
            run.close(seconds)

    def _start(self) -> _Run[T]:
        with self._lock:
            if self._run is None:
                import atexit

                self._run = _Run(self.sink, self._make, self._most)
                atexit.register(self.close)
            return self._run

    def forked(self) -> None:
        """Begin anew: in this process nothing was written yet, and its parent's file is not ours.

        The parent's thread is not here, and what it held open is left alone.
        """
        self._lock = threading.Lock()
        self._run = None


_WRITERS: weakref.WeakSet[Writer[Any]] = weakref.WeakSet()


def _forked() -> None:
    for writer in list(_WRITERS):
        writer.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Run(Generic[T]):
    """A thread that writes, from the first record to the end."""

    def __init__(self, sink: Sink, make: Make[T], most: int) -> None:
        self._sink = sink
        self._make = make
        self._queue: Queue[T] = Queue(most, MOST_BYTES, batch=BATCH, linger=LINGER)
        self._ending = False
        self._writing = 0
        self._ailing = ""
        self._full = False
        self._thread = threading.Thread(target=self._work, name="answerback-records", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as exc:  # No more threads, or the process is ending.
            self._ailing = str(exc)

    def put(self, item: T, weight: int) -> None:
        if not self._queue.put(item, weight) and not self._full:
            self._full = True
            why = self._ailing or f"{self._sink} takes too long"
            _log().error("records are being lost, because no more can wait: %s", why)

    def flush(self, seconds: float) -> bool:
        flushed = threading.Event()
        self._queue.hurry(flushed)
        return flushed.wait(seconds)

    def close(self, seconds: float) -> None:
        self._ending = True
        self._queue.hurry()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        lost = self._writing + len(self._queue) + self._queue.lost
        if lost:
            why = self._ailing or f"{self._sink} takes too long"
            were = "record was" if lost == 1 else "records were"
            _log().error("%d %s lost: %s", lost, were, why)

    def _work(self) -> None:
        # A variable of this function, so that a forked process never frees what it holds open.
        pen = Pen(self._sink)
        while True:
            taken = self._queue.take()
            ending = self._ending
            self._write_all(pen, taken)
            for flushed in taken.flushed:
                flushed.set()
            if ending and not len(self._queue):
                self._end(pen)
                return

    def _end(self, pen: Pen) -> None:
        pen.end()
        removed = pen.left_behind().removed
        if removed:
            self._ailing = self._ailing or f"{self._sink} was removed"
            self._queue.lose(removed)

    def _write_all(self, pen: Pen, taken: Taken[T]) -> None:
        """What cannot be written although it is time to end is counted as lost."""
        left = len(taken.items)
        lost = taken.lost
        for start in range(0, left or min(lost, 1), BATCH):
            self._writing = left
            items = taken.items[start : start + BATCH]
            if not self._write(pen, items, lost):
                self._queue.lose(left + lost)
                break
            left -= len(items)
            lost = 0
        self._writing = 0

    def _write(self, pen: Pen, items: list[T], lost: int) -> bool:
        """Write until it is written, or time to end."""
        pause = _FIRST_PAUSE
        moved = False
        while True:
            try:
                pen.write(self._events(items), lost)
            except Exception as exc:  # noqa: BLE001 -- whatever ails a sink, calls are answered
                self._fell_ill(exc)
                if isinstance(exc, FileMoved) and not moved:
                    moved = True
                    continue
                if self._ending:
                    pen.give_up()
                    return False
                self._queue.pause(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                self._is_well(lost, pen.left_behind())
                return True

    def _events(self, items: list[T]) -> Iterator[Event]:
        for count, item in enumerate(items, 1):
            hurried = self._queue.is_filling()
            yield self._make(item, hurried)
            if not (hurried or count % _AT_A_STRETCH):
                sleep(0)

    def _fell_ill(self, exc: Exception) -> None:
        said, self._ailing = self._ailing, f"{self._sink}: {type(exc).__name__}: {exc}"
        if not said:
            told = "records cannot be written, and up to %d will wait: %s"
            _log().error(told, self._queue.most, self._ailing)

    def _is_well(self, lost: int, left: LeftBehind) -> None:
        if self._ailing or lost or any(left):
            lost += left.removed
            were = "was" if lost == 1 else "were"
            told = f"records are written to {self._sink} again; {lost} {were} lost"
            if left.removed:
                told += f", {left.removed} of them with the file that was removed"
            if left.elsewhere:
                told += f"; {left.elsewhere} from before are in the file that was there"
            _log().warning("%s", told)
        self._ailing = ""
        self._full = False


def _log() -> Any:
    import logging

    return logging.getLogger("answerback")
