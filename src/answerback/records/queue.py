"""Between those who answer calls and the one who writes: bounded, and never waited for."""

from __future__ import annotations

import threading
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Taken(NamedTuple, Generic[T]):
    items: list[T]
    lost: int
    """How many there was no room for since the last were taken."""
    flushed: list[threading.Event]
    """Who waits for these to be written."""


class Queue(Generic[T]):
    """At most *most* items that weigh at most *most_bytes*; what is beyond is counted."""

    def __init__(self, most: int, most_bytes: int, *, batch: int, linger: float) -> None:
        self.most = most
        self._most_bytes = most_bytes
        self._batch = batch
        self._linger = linger
        self._items: list[T] = []
        self._held = 0
        self._lost = 0
        self._flushed: list[threading.Event] = []
        self._lock = threading.Lock()
        self._something = threading.Event()
        self._enough = threading.Event()

    def put(self, item: T, weight: int) -> bool:
        """Leave it to be written; never waits for who writes. False if there is no room."""
        with self._lock:
            count = len(self._items)
            if count >= self.most or (count and self._held + weight > self._most_bytes):
                self._lost += 1
                return False
            self._items.append(item)
            self._held += weight
        if not count:
            self._something.set()
        elif count == self._batch:
            self._enough.set()
        return True

    def lose(self, count: int) -> None:
        """Count what was taken and cannot be written."""
        with self._lock:
            self._lost += count

    def hurry(self, flushed: threading.Event | None = None) -> None:
        """Have what is there written without waiting for more, and *flushed* set then."""
        with self._lock:
            if flushed is not None:
                self._flushed.append(flushed)
        self._enough.set()
        self._something.set()

    def take(self) -> Taken[T]:
        """All there is, once there is something and others had their time to come."""
        self._something.wait()
        self._enough.wait(self._linger)
        self._something.clear()
        self._enough.clear()
        with self._lock:
            taken = Taken(self._items, self._lost, self._flushed)
            self._items, self._held, self._lost, self._flushed = [], 0, 0, []
        return taken

    def pause(self, seconds: float) -> None:
        """Wait before another attempt; not so long if somebody hurries."""
        if self._enough.wait(seconds):
            self._enough.clear()

    def is_filling(self) -> bool:
        """Whether so much waits that some may soon be lost."""
        return 2 * len(self._items) > self.most

    def __len__(self) -> int:
        return len(self._items)

    @property
    def lost(self) -> int:
        return self._lost
