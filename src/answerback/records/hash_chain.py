"""Hash chains: each process writes one, and `verify` follows all the chains in a file.

A record's hash covers its bytes and the previous record's hash.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

import msgspec

from ..core.files import FileEmptied, FileRemoved
from .event import ENDED, LOST, STARTED, Entry, Event, Sink, Store
from .reader import StoredRecord, TornLine, decode, read

_encode = msgspec.json.Encoder().encode


def chain_hash(previous: str, body: bytes) -> str:
    """Return the hash for a record with this *body*; *previous* is the previous record's hash."""
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
        """Make *last*, which has been written, the chain's head."""
        self.seq, self.head = last.seq, last.hash


class PreviousFiles(NamedTuple):
    """The number of records this process wrote to files that are no longer at the sink's path."""

    removed: int = 0
    """Records that were lost because their file was removed."""
    moved: int = 0
    """Records in files that were moved, or whose removal cannot be detected."""
    emptied: int = 0
    """Records in files that were emptied, probably after they were copied."""


class ChainWriter:
    """Writes events to a sink as a hash chain; reopens the store after a failure.

    Not thread-safe.
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
        """Write *events*, preceded by a record of how many events were *lost* and *why*.

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
        """Return the counts since the last call, and reset them."""
        counts, self._previous_files = self._previous_files, PreviousFiles()
        return counts

    def _open_store(self) -> Store:
        store = self._sink.open()
        try:
            # The path may now lead to a different file, without the start of this chain. The
            # unwritten entries of a chain that has not started are linked again too, because the
            # first of them names the newest record in the file that was open at the time.
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


class Head(msgspec.Struct):
    """A chain's last valid record."""

    chain: str
    records: int
    hash: str
    ended: bool = False
    """True if the chain has its end record; if not, the process is still running, was killed, or
    the end of the chain was cut off."""
    began: str = ""
    """Why the process started this chain after an earlier one, if recorded."""


class Verdict(msgspec.Struct):
    """The result of `verify`."""

    records: int = 0
    heads: list[Head] = []
    torn: list[int] = []
    """The numbers of lines that were cut off when their process was killed."""
    broken: str = ""
    """The first record that does not fit its chain, or the missing tail; empty if there is none."""

    @property
    def holds(self) -> bool:
        return not self.broken


def verify(path: str, heads: Sequence[str] = ()) -> Verdict:
    """Verify every chain; records with the hashes in *heads*, saved earlier, must still exist."""
    # The file is read twice: first for the hashes that must exist, then to find them.
    missing: dict[str, str] = {}
    for record in read(path):
        if isinstance(record, StoredRecord) and record.seq == 1:
            event = decode(record)
            if event is not None and event.after:
                missing[event.after] = f"chain {record.chain} began after it"
    missing |= dict.fromkeys(heads, "it was given as a head")
    verdict = Verdict()
    chains: dict[str, Head] = {}
    cut: dict[str, int] = {}
    for record in read(path):
        if isinstance(record, TornLine):
            if record.chain is None:
                verdict.broken = verdict.broken or f"not a record: line {record.number}"
            else:
                verdict.torn.append(record.number)
                cut[record.chain] = record.number
            continue
        verdict.records += 1
        verdict.broken = verdict.broken or _check(record, chains)
        if not verdict.broken and record.chain in cut:
            # A killed process leaves a truncated line, and writes nothing after it.
            verdict.broken = f"not a record: line {cut[record.chain]}; its chain continues after it"
        missing.pop(record.hash, None)
    verdict.heads = list(chains.values())
    if missing and not verdict.broken:
        lost, why = next(iter(missing.items()))
        verdict.broken = f"a tail was cut: the record with the hash {lost} is missing, but {why}"
    return verdict


def _check(record: StoredRecord, chains: dict[str, Head]) -> str:
    """Return what is wrong with the record; a valid record becomes its chain's head."""
    head = chains.setdefault(record.chain, Head(record.chain, 0, ""))
    where = f"record {record.number}, number {record.seq} of chain {record.chain}"
    event = decode(record)
    if head.ended:
        return f"{where}: it comes after the end of its chain"
    if record.seq != head.records + 1:
        return f"{where}: number {head.records + 1} should be here"
    if chain_hash(head.hash, record.body) != record.hash:
        return f"{where}: it was changed: its hash does not match its content"
    if record.altered:
        return f"{where}: its line was changed: it has different members or spacing"
    if event is None:
        return f"{where}: it is not an event"
    if (event.event == STARTED) != (record.seq == 1):
        return f"{where}: the first record of a chain, and no other, must be {STARTED}"
    head.records, head.hash, head.ended = record.seq, record.hash, event.event == ENDED
    head.began = event.why if record.seq == 1 else head.began
    return ""
