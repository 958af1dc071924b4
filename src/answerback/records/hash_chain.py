"""A process's hash chain: each record's hash covers its bytes and the hash before it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

import msgspec

from ..core.files import FileEmptied, FileRemoved
from .event import ENDED, LOST, STARTED, Event
from .sink import Entry, Sink, Store

_encode = msgspec.json.Encoder().encode


def chain_hash(previous: str, body: bytes) -> str:
    """Return the hash of the record *body*, which follows the record with the hash *previous*."""
    return sha256(previous.encode() + body).hexdigest()


class Chain:
    """The id of a chain, and the number and hash of its last written record."""

    def __init__(self) -> None:
        self.id = os.urandom(8).hex()
        self.seq = 0
        self.head = ""

    def entries_for(self, events: Iterable[Event]) -> list[Entry]:
        """Return the chain's next entries. Call `advance` after writing them."""
        entries: list[Entry] = []
        seq, head = self.seq, self.head
        for event in events:
            body = _encode(event)
            head = chain_hash(head, body)
            seq += 1
            entries.append(Entry(self.id, seq, head, body, event))
        return entries

    def advance(self, last: Entry) -> None:
        """Make *last*, which was written, the chain's head."""
        self.seq, self.head = last.seq, last.hash


class PreviousFiles(NamedTuple):
    """How many records this process wrote to files that are no longer at the sink's path."""

    removed: int = 0
    """Records that were lost because their file was removed."""
    moved: int = 0
    """Records in files that were moved, or whose removal cannot be detected."""
    emptied: int = 0
    """Records in files that were emptied, probably after they were copied."""


class ChainWriter:
    """A writer of events to a sink as a hash chain; after a failure it reopens the store.

    Only one thread may use it.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._chain = Chain()
        self._store: Store | None = None
        self._unwritten: list[Entry] = []
        self._failure: BaseException | None = None
        self._began = ""
        self._previous_files = PreviousFiles()

    def write(self, events: Iterable[Event], lost: int = 0, why: str = "") -> None:
        """Write *events*, after a record with the number of *lost* events and the reason.

        If a call fails, the next call writes the failed entries and ignores its own *events*: the
        caller repeats the call with the same events until it succeeds.
        """
        if self._store is None:
            self._store = self._open_store()
        try:
            if not self._unwritten:
                leading = self._leading_events(self._store, lost, why)
                self._unwritten = self._chain.entries_for(itertools.chain(leading, events))
            self._store.write(self._unwritten)
        except BaseException as exc:
            self._failure = exc
            self._close_store()
            raise
        if self._unwritten:
            self._chain.advance(self._unwritten[-1])
        self._unwritten = []

    def discard_unwritten(self) -> None:
        """Drop the entries that could not be written."""
        self._unwritten = []

    def close(self) -> None:
        """Write the chain's last record, if the store is open, and close the store."""
        if self._store is not None and self._chain.seq:
            with suppress(Exception):
                self.write([Event(event=ENDED, time=_now(), process=os.getpid())])
        if isinstance(self._failure, FileRemoved) and self._chain.seq:
            self._count_previous_file()
        self._close_store()

    def take_previous_files(self) -> PreviousFiles:
        """Return the counts since this method's last call, and reset them."""
        counts, self._previous_files = self._previous_files, PreviousFiles()
        return counts

    def _open_store(self) -> Store:
        store = self._sink.open()
        try:
            # The path may lead to another file than before, which does not have the start of this
            # chain. Unwritten entries of a chain that has not started are linked again too, because
            # the first of them names the newest record of the file that was open then.
            if not self._chain.seq:
                self._start_chain(store)
            elif not store.holds(self._chain.head):
                self._count_previous_file()
                self._start_chain(store)
        except BaseException:
            store.close()
            raise
        self._failure = None
        return store

    def _count_previous_file(self) -> None:
        removed, moved, emptied = self._previous_files
        # A chain's first record is the start event, which is not about a call.
        count = self._chain.seq - 1
        self._began = ""
        if isinstance(self._failure, FileRemoved):
            self._previous_files = PreviousFiles(removed + count, moved, emptied)
        elif isinstance(self._failure, FileEmptied):
            self._previous_files = PreviousFiles(removed, moved, emptied + count)
            self._began = "the file was emptied"
        else:
            self._previous_files = PreviousFiles(removed, moved + count, emptied)

    def _start_chain(self, store: Store) -> None:
        """Start a new chain, and link the unwritten events into it."""
        self._chain = Chain()
        events = [entry.event for entry in self._unwritten]
        waiting = [event for event in events if event.event != STARTED]
        leading = self._leading_events(store) if waiting else ()
        self._unwritten = self._chain.entries_for(itertools.chain(leading, waiting))

    def _leading_events(self, store: Store, lost: int = 0, why: str = "") -> Iterator[Event]:
        if not self._chain.seq:
            yield Event(
                event=STARTED,
                time=_now(),
                process=os.getpid(),
                after=store.newest(),
                why=self._began,
            )
        if lost:
            yield Event(event=LOST, time=_now(), lost=lost, why=why)

    def _close_store(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(Exception):
                store.close()


def _now() -> datetime:
    return datetime.now(UTC)
