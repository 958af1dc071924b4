"""The protocol that every sink implements, and the checks and locks that sinks with files share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Protocol, Self

import msgspec

from .event import Event


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event and its position in the hash chain of the process that wrote it."""

    chain: str
    """The id of the chain; each process has one."""
    seq: int
    """The entry's number in its chain."""
    hash: str
    """The SHA-256 of the previous hash and the body."""
    body: bytes
    """The event's JSON; the hash covers these bytes."""
    event: Event
    """The event."""


class Store(Protocol):
    """An open sink. Only one thread uses it, and its methods may block."""

    def newest(self) -> str:
        """Return the hash of the newest record, or "" if there is none or it is not known."""

    def holds(self, record_hash: str) -> bool:
        """Return whether a recent record has that hash; called after the store was reopened."""

    def write(self, batch: Sequence[Entry]) -> None:
        """Write the whole batch, or raise an exception and write nothing of it."""

    def close(self) -> None:
        """Close it; nothing is written afterwards."""


class Sink(Protocol):
    """A place to which events are written.

    A sink is created before a fork. Each process that writes to it opens it after the fork.
    """

    def open(self) -> Store:
        """Open it in this process."""


class WriteOnlySink:
    """A sink that is its own store. It cannot be read back, so its chain is never started again."""

    def open(self) -> Self:
        return self

    def newest(self) -> str:
        return ""

    def holds(self, record_hash: str) -> bool:
        return True

    def close(self) -> None:
        pass


@contextmanager
def file_lock(fd: int) -> Iterator[None]:
    """Hold an exclusive lock on an open file.

    Windows has no flock: there nothing is locked, and only one process may write to a file.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


@contextmanager
def folder_lock(path: str) -> Iterator[None]:
    """Hold an exclusive lock on the folder of *path*, which stays the same if the file is moved."""
    if os.name == "nt":  # Windows does not allow an open file to be moved.
        yield
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    with ExitStack() as stack:
        stack.callback(os.close, folder)
        with suppress(OSError):  # Some network file systems do not support flock.
            stack.enter_context(file_lock(folder))
        yield
