"""Of several streams that a session has open, the newest alone is spoken on.

A message goes to one stream, whichever workers they are at; when the newest ends, the one before
it has its turn again.
"""

from __future__ import annotations

import time

from .worker_bus import Listens


class Turns:
    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._streams: dict[bytes, dict[int, int]] = {}
        """For each session the streams by when they were opened, and at which worker they are."""

    def open(self, nonce: bytes) -> Listens:
        """A stream begins here; what the other workers are to hear."""
        # The clock is the same for all processes of a machine.
        note = Listens(nonce, time.monotonic_ns(), self._worker, True)
        self.hear(note)
        return note

    def close(self, opened: Listens) -> Listens:
        """It has ended; what the other workers are to hear."""
        note = Listens(opened.nonce, opened.since, self._worker, False)
        self.hear(note)
        return note

    def hear(self, note: Listens) -> None:
        streams = self._streams.setdefault(note.nonce, {})
        if note.open:
            streams[note.since] = note.worker
        else:
            streams.pop(note.since, None)
        if not streams:
            del self._streams[note.nonce]

    def forget(self, nonce: bytes) -> None:
        """The session is over."""
        self._streams.pop(nonce, None)

    def has(self, stream: Listens) -> bool:
        """Whether it is that stream's turn."""
        return stream.since == max(self._streams.get(stream.nonce, (0,)))
