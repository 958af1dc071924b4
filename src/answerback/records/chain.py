"""One hash chain for each process: a record's hash is of its own bytes and the hash before."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from .event import Event
from .sink import Entry

_encode = msgspec.json.Encoder().encode


def link(previous: str, body: bytes) -> str:
    """The hash of the record that follows the one with the hash *previous*."""
    return sha256(previous.encode() + body).hexdigest()


class Chain:
    def __init__(self) -> None:
        self.id = os.urandom(8).hex()
        self.seq = 0
        self.head = ""

    def extend(self, events: Iterable[Event]) -> list[Entry]:
        """The entries for *events*; they are in the chain once they are `kept`."""
        entries: list[Entry] = []
        seq, head = self.seq, self.head
        for event in events:
            body = _encode(event)
            head = link(head, body)
            seq += 1
            entries.append(Entry(self.id, seq, head, body, event))
        return entries

    def kept(self, last: Entry) -> None:
        self.seq, self.head = last.seq, last.hash
