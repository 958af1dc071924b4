"""Writes call events to one sink in a separate thread, so that no call waits for the sink.

The one exception: when the queue is nearly full, an in-process call waits for a millisecond.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Iterator
from time import sleep
from typing import TYPE_CHECKING, TypeAlias

from ..core.background_work import after_fork
from ..core.files import FileMoved
from ..core.log import logger
from .event import Event, Sink
from .hash_chain import ChainWriter, PreviousFiles

if TYPE_CHECKING:
    from .recorder import CallRecord

MakeEvent: TypeAlias = "Callable[[CallRecord, bool], Event]"
"""Creates a call's event; the second argument is True if the queue is filling up."""

BATCH_SIZE = 1024
BATCH_SECONDS = 0.2
MAX_WAITING_BYTES = 64 * 1024 * 1024
CLOSE_SECONDS = 5.0
# The writer thread releases the GIL after this many events, so that calls are not held up.
_EVENTS_PER_GIL_RELEASE = 128
_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.1, 5.0
_PAUSE_SECONDS = 0.001
"""The maximum time that an in-process call waits for the writer thread."""


class Queue:
    """A queue of at most *max_items* records and MAX_WAITING_BYTES; counts refused records.

    `take` returns when BATCH_SIZE records are waiting, or BATCH_SECONDS after the first arrived.
    """

    def __init__(self, max_items: int) -> None:
        self.max_items = max_items
        self._items: list[CallRecord] = []
        self._bytes = 0
        self.lost = 0
        """How many items were refused, or could not be written, since the last `take`."""
        self._flush_waiters: list[threading.Event] = []
        self._lock = threading.Lock()
        self._not_empty = threading.Event()
        self._batch_ready = threading.Event()

    def put(self, item: CallRecord, size: int) -> bool:
        """Add an item of *size* bytes, or return False if the queue is full; never blocks."""
        with self._lock:
            count = len(self._items)
            if count >= self.max_items or (count and self._bytes + size > MAX_WAITING_BYTES):
                self.lost += 1
                return False
            self._items.append(item)
            self._bytes += size
        if not count:
            self._not_empty.set()
        elif count == BATCH_SIZE:
            self._batch_ready.set()
        return True

    def add_lost(self, count: int) -> None:
        """Count items that were taken but cannot be written."""
        with self._lock:
            self.lost += count

    def wake(self, flushed: threading.Event | None = None) -> None:
        """Make `take` return immediately; the writer sets *flushed* after writing the items."""
        with self._lock:
            if flushed is not None:
                self._flush_waiters.append(flushed)
        self._batch_ready.set()
        self._not_empty.set()

    def take(self) -> tuple[list[CallRecord], int, list[threading.Event]]:
        """Wait for a batch and remove all items from the queue.

        Return them, how many items were refused since the last `take`, and the events to set once
        the items are written.
        """
        self._not_empty.wait()
        self._batch_ready.wait(BATCH_SECONDS)
        self._not_empty.clear()
        self._batch_ready.clear()
        with self._lock:
            taken = self._items, self.lost, self._flush_waiters
            self._items, self._bytes, self.lost, self._flush_waiters = [], 0, 0, []
        return taken

    def wait_before_retry(self, seconds: float) -> None:
        """Wait for *seconds*, or until a batch is ready or `wake` is called."""
        if self._batch_ready.wait(seconds):
            self._batch_ready.clear()

    def is_over_half_full(self) -> bool:
        return 2 * len(self._items) > self.max_items

    def is_nearly_full(self) -> bool:
        return 4 * len(self._items) > 3 * self.max_items or 4 * self._bytes > 3 * MAX_WAITING_BYTES

    def __len__(self) -> int:
        return len(self._items)


class Writer:
    """A sink's writer. The first item starts its thread, in the process that adds it."""

    def __init__(self, sink: Sink, make_event: MakeEvent, max_waiting: int) -> None:
        self.sink = sink
        self._make_event = make_event
        self._max_waiting = max_waiting
        self._reset()
        after_fork(self._reset)

    def _reset(self) -> None:
        """Start without a thread: a forked child does not have its parent's.

        The child opens the sink itself. It must not use or close the parent's files.
        """
        self._lock = threading.Lock()
        self._thread: _WriterThread | None = None

    def put(self, item: CallRecord, size: int) -> None:
        """Queue an item of *size* bytes, without waiting for the sink."""
        if self._thread is None and sys.is_finalizing():
            # An unfinished call is being freed with the interpreter. Do not start a thread
            # now (Python 3.11 would wait for it forever); logging cannot be imported either.
            if sys.stderr is not None:
                sys.stderr.write("answerback: 1 record was lost: the process ended\n")
            return
        (self._thread or self._start()).put(item, size)

    def yield_to_writer(self) -> None:
        """Let the writer thread run for a moment if its queue is nearly full.

        A tight loop of calls in this process would keep the thread from writing.
        """
        if self._thread is not None:
            self._thread.make_room()

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until all queued items are written; return False on timeout."""
        thread = self._thread
        return thread is None or thread.flush(seconds)

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to write failed."""
        return self._thread is not None and self._thread.is_failing

    @property
    def waiting(self) -> int:
        """The number of items waiting to be written."""
        return 0 if self._thread is None else self._thread.waiting

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write the queued items and end the chain; log how many items were lost."""
        thread, self._thread = self._thread, None
        if thread is not None:
            atexit.unregister(self.close)
            thread.close(seconds)

    def _start(self) -> _WriterThread:
        with self._lock:
            if self._thread is None:
                self._thread = _WriterThread(self.sink, self._make_event, self._max_waiting)
                atexit.register(self.close)
            return self._thread


class _WriterThread:
    """One writer thread and its queue, from the first item until `close`."""

    def __init__(self, sink: Sink, make_event: MakeEvent, max_waiting: int) -> None:
        self._sink = sink
        self._make_event = make_event
        self._queue = Queue(max_waiting)
        self._closing = False
        self._unwritten = 0
        self._last_error = ""
        self._overflow_logged = False
        self._thread = threading.Thread(target=self._run, name="answerback-records", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as exc:  # No more threads are available, or the process is exiting.
            self._last_error = str(exc)

    def put(self, item: CallRecord, size: int) -> None:
        if not self._queue.put(item, size) and not self._overflow_logged:
            self._overflow_logged = True
            logger().error("records are being lost, because the queue is full: %s", self._reason())

    def flush(self, seconds: float) -> bool:
        flushed = threading.Event()
        self._queue.wake(flushed)
        return flushed.wait(seconds)

    def close(self, seconds: float) -> None:
        self._closing = True
        self._queue.wake()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        lost = self._unwritten + len(self._queue) + self._queue.lost
        if lost:
            were = "record was" if lost == 1 else "records were"
            logger().error("%d %s lost: %s", lost, were, self._reason())

    @property
    def is_failing(self) -> bool:
        return bool(self._last_error)

    def make_room(self) -> None:
        """Let this thread run if items are waiting and the sink accepts them."""
        if self._queue.is_nearly_full() and not self._last_error:
            self._queue.wake()
            sleep(_PAUSE_SECONDS)

    @property
    def waiting(self) -> int:
        return self._unwritten + len(self._queue)

    def _reason(self) -> str:
        return self._last_error or f"{self._sink} takes too long"

    def _run(self) -> None:
        # A local variable: as an attribute it would be freed in a forked child, and the child
        # would close the store that the parent is still using.
        chain_writer = ChainWriter(self._sink)
        while True:
            taken, lost, flush_waiters = self._queue.take()
            closing = self._closing
            unwritten = len(taken)
            # Write an empty batch if there are only lost items to record.
            for start in range(0, unwritten or min(lost, 1), BATCH_SIZE):
                self._unwritten = unwritten
                items = taken[start : start + BATCH_SIZE]
                if not self._write_with_retries(chain_writer, items, lost):
                    self._queue.add_lost(unwritten + lost)
                    break
                unwritten -= len(items)
                lost = 0
            self._unwritten = 0
            for flushed in flush_waiters:
                flushed.set()
            if closing and not len(self._queue):
                chain_writer.close()
                removed = chain_writer.take_previous_files().removed
                if removed:
                    self._last_error = self._last_error or f"{self._sink} was removed"
                    self._queue.add_lost(removed)
                return

    def _write_with_retries(
        self, chain_writer: ChainWriter, items: list[CallRecord], lost: int
    ) -> bool:
        """Retry until the items are written; return False if writing fails while closing."""
        delay = _FIRST_RETRY_SECONDS
        moved = False
        why = self._last_error or "the event queue was full"
        while True:
            try:
                chain_writer.write(self._make_events(items), lost, why)
            except Exception as exc:  # noqa: BLE001 -- a failing sink must not end the thread
                is_first = not self._last_error
                self._last_error = f"{self._sink}: {type(exc).__name__}: {exc}"
                if is_first:
                    message = "records cannot be written, and up to %d are kept in memory: %s"
                    logger().error(message, self._queue.max_items, self._last_error)
                if isinstance(exc, FileMoved) and not moved:
                    moved = True
                    continue
                if self._closing:
                    chain_writer.discard_unwritten()
                    return False
                self._queue.wait_before_retry(delay)
                delay = min(delay * 2, _MAX_RETRY_SECONDS)
            else:
                self._on_written(lost, chain_writer.take_previous_files())
                return True

    def _make_events(self, items: list[CallRecord]) -> Iterator[Event]:
        for count, item in enumerate(items, 1):
            filling = self._queue.is_over_half_full()
            yield self._make_event(item, filling)
            if not (filling or count % _EVENTS_PER_GIL_RELEASE):
                sleep(0)

    def _on_written(self, lost: int, previous: PreviousFiles) -> None:
        """Log the recovery and any losses, if there was an error or a loss."""
        if self._last_error or lost or any(previous):
            lost += previous.removed
            were = "was" if lost == 1 else "were"
            message = f"records are being written to {self._sink} again; {lost} {were} lost"
            if previous.removed:
                message += f", {previous.removed} of them in a file that was removed"
            if previous.moved:
                message += f"; {previous.moved} earlier ones are in the previous file"
            if previous.emptied:
                message += f"; {previous.emptied} earlier ones were in the file when it was emptied"
            logger().warning("%s", message)
        self._last_error = ""
        self._overflow_logged = False
