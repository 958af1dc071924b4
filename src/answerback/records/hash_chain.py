"""Puts events into an open store, linked into the chain of this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain as one_after_another
from typing import NamedTuple

from .chain import Chain
from .event import ENDED, LOST, STARTED, Event
from .place import FileRemoved
from .sink import Entry, Sink, Store


class LeftBehind(NamedTuple):
    """How many records of this process are not in the file that is written now."""

    removed: int = 0
    """Gone with a file that was removed."""
    elsewhere: int = 0
    """In a file that is no longer in its place."""


class Pen:
    """Used by one thread. A store that failed is opened anew for the next attempt."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._chain = Chain()
        self._store: Store | None = None
        self._unwritten: list[Entry] = []
        self._removed = False
        self._left_behind = LeftBehind()

    def write(self, events: Iterable[Event], lost: int = 0) -> None:
        """Write *events*; after a failure, what failed is written first, and *events* not again."""
        if self._store is None:
            self._store = self._opened()
        try:
            if not self._unwritten:
                before = self._before(self._store, lost)
                self._unwritten = self._chain.extend(one_after_another(before, events))
            self._store.write(self._unwritten)
        except BaseException as exc:
            self._removed = isinstance(exc, FileRemoved)
            self._close()
            raise
        if self._unwritten:
            self._chain.kept(self._unwritten[-1])
        self._unwritten = []

    def give_up(self) -> None:
        """Leave out what could not be written."""
        self._unwritten = []

    def end(self) -> None:
        """Write that the chain ends here, if the store can be written."""
        if self._store is not None and self._chain.seq:
            with suppress(Exception):
                self.write([Event(event=ENDED, time=_now(), process=os.getpid())])
        if self._removed and self._chain.seq:
            self._leave_behind()
        self._close()

    def left_behind(self) -> LeftBehind:
        """The records left behind since this was last asked."""
        left, self._left_behind = self._left_behind, LeftBehind()
        return left

    def _opened(self) -> Store:
        store = self._sink.open()
        try:
            # Another file than before may be there now, in which this chain has no beginning. A
            # first batch that was not written names the newest record of the file before.
            if not self._chain.seq:
                self._begin_anew(store)
            elif not store.holds(self._chain.head):
                self._leave_behind()
                self._begin_anew(store)
        except BaseException:
            store.close()
            raise
        self._removed = False
        return store

    def _leave_behind(self) -> None:
        removed, elsewhere = self._left_behind
        # The first record of a chain tells its beginning and is of no call.
        count = self._chain.seq - 1
        if self._removed:
            self._left_behind = LeftBehind(removed + count, elsewhere)
        else:
            self._left_behind = LeftBehind(removed, elsewhere + count)

    def _begin_anew(self, store: Store) -> None:
        self._chain = Chain()
        events = [entry.event for entry in self._unwritten]
        waiting = [event for event in events if event.event != STARTED]
        begun = self._before(store, 0) if waiting else ()
        self._unwritten = self._chain.extend(one_after_another(begun, waiting))

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
