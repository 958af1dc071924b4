"""The seam: whatever keeps events is a Sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from .event import Event


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event, and its place in the chain of the process that wrote it."""

    chain: str
    seq: int
    hash: str
    body: bytes
    """The event's JSON, which the hash is of."""
    event: Event


class Store(Protocol):
    """A sink that is open. One thread uses it, and may wait in it as long as it takes."""

    def newest(self) -> str:
        """The hash of the newest record that is kept; empty if there is none, or no knowing."""

    def holds(self, hashed: str) -> bool:
        """Whether the record of that hash is among the latest; asked when it was opened anew."""

    def write(self, batch: Sequence[Entry]) -> None:
        """Keep all of *batch* or, raising whatever it may, nothing of it."""

    def close(self) -> None: ...


class Sink(Protocol):
    """Where events are kept. It is made before a fork and opened after it, in each process."""

    def open(self) -> Store: ...
