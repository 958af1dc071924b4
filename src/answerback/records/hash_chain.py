"""Puts events into an open store, linked into the chain of this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain as one_after_another

from .chain import Chain
from .event import ENDED, LOST, STARTED, Event
from .sink import Entry, Sink, Store


class Pen:
    """Used by one thread. A store that failed is opened anew for the next attempt."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._chain = Chain()
        self._store: Store | None = None
        self._unwritten: list[Entry] = []

    def write(self, events: Iterable[Event], lost: int = 0) -> None:
        """Write *events*; after a failure, what failed is written first, and *events* not again."""
        if self._store is None:
            self._store = self._opened()
        if not self._unwritten:
            before = self._before(self._store, lost)
            self._unwritten = self._chain.extend(one_after_another(before, events))
        try:
            self._store.write(self._unwritten)
        except BaseException:
            self._close()
            raise
        if self._unwritten:
            self._chain.kept(self._unwritten[-1])
        self._unwritten = []

    def give_up(self) -> None:
        """Leave out what could not be written."""
        self._unwritten = []

    def end(self) -> None:
        """Say that this was all, if the store is well."""
        if self._store is not None and self._chain.seq:
            with suppress(Exception):
                self.write([Event(event=ENDED, time=_now(), process=os.getpid())])
        self._close()

    def _opened(self) -> Store:
        store = self._sink.open()
        # Another file than before may be there now, in which this chain has no beginning.
        if self._chain.seq and not store.holds(self._chain.head):
            self._chain = Chain()
            waiting = [entry.event for entry in self._unwritten]
            begun = self._before(store, 0) if waiting else ()
            self._unwritten = self._chain.extend(one_after_another(begun, waiting))
        return store

    def _before(self, store: Store, lost: int) -> Iterator[Event]:
        if not self._chain.seq:
            yield Event(event=STARTED, time=_now(), process=os.getpid(), after=store.newest())
        if lost:
            why = "more came than could wait to be written"
            yield Event(event=LOST, time=_now(), lost=lost, why=why)

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(Exception):
                store.close()


def _now() -> datetime:
    return datetime.now(UTC)
