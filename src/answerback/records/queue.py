"""The bounded queue between the threads that answer calls and the thread that writes records."""

from __future__ import annotations

import threading
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class TakenItems(NamedTuple, Generic[T]):
    items: list[T]
    lost: int
    """How many items were refused since the last `take`, because the queue was full."""
    flush_waiters: list[threading.Event]
    """Set each of these events once the items are written."""


class Queue(Generic[T]):
    """A queue of at most *max_items* items and *max_bytes* in all; it counts the items it refuses.

    `take` returns when *batch_size* items wait, or *batch_seconds* after the first one arrived.
    """

    def __init__(
        self, max_items: int, max_bytes: int, *, batch_size: int, batch_seconds: float
    ) -> None:
        self.max_items = max_items
        self._max_bytes = max_bytes
        self._batch_size = batch_size
        self._batch_seconds = batch_seconds
        self._items: list[T] = []
        self._bytes = 0
        self._lost = 0
        self._flush_waiters: list[threading.Event] = []
        self._lock = threading.Lock()
        self._not_empty = threading.Event()
        self._batch_ready = threading.Event()

    def put(self, item: T, size: int) -> bool:
        """Add an item of *size* bytes, or return False if the queue is full; never wait."""
        with self._lock:
            count = len(self._items)
            if count >= self.max_items or (count and self._bytes + size > self._max_bytes):
                self._lost += 1
                return False
            self._items.append(item)
            self._bytes += size
        if not count:
            self._not_empty.set()
        elif count == self._batch_size:
            self._batch_ready.set()
        return True

    def add_lost(self, count: int) -> None:
        """Count items that were taken but cannot be written."""
        with self._lock:
            self._lost += count

    def wake(self, flushed: threading.Event | None = None) -> None:
        """Make `take` return at once; the writer sets *flushed* after writing the items."""
        with self._lock:
            if flushed is not None:
                self._flush_waiters.append(flushed)
        self._batch_ready.set()
        self._not_empty.set()

    def take(self) -> TakenItems[T]:
        """Wait for a batch and remove all items from the queue."""
        self._not_empty.wait()
        self._batch_ready.wait(self._batch_seconds)
        self._not_empty.clear()
        self._batch_ready.clear()
        with self._lock:
            taken = TakenItems(self._items, self._lost, self._flush_waiters)
            self._items, self._bytes, self._lost, self._flush_waiters = [], 0, 0, []
        return taken

    def wait_before_retry(self, seconds: float) -> None:
        """Wait for *seconds*, or until a batch is ready or `wake` is called."""
        if self._batch_ready.wait(seconds):
            self._batch_ready.clear()

    def is_over_half_full(self) -> bool:
        return 2 * len(self._items) > self.max_items

    def is_nearly_full(self) -> bool:
        return 4 * len(self._items) > 3 * self.max_items or 4 * self._bytes > 3 * self._max_bytes

    def __len__(self) -> int:
        return len(self._items)

    @property
    def lost(self) -> int:
        return self._lost
