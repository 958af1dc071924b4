"""A file by its name: whether the one that is open is still the one that others will find."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress


class FileMoved(FileNotFoundError):
    """The open file is no longer at its path; a new one can be opened there at once."""


class FileRemoved(FileMoved):
    """The open file has no name left, so its contents go when it is closed."""


class Place:
    """Made when the file is opened; one that cannot be looked at is never missed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened = self._look()
        self._fd = self._hold()

    def check(self) -> None:
        """Raises FileRemoved if the file is gone, FileMoved if it was moved or may be gone.

        What is written to a removed file is lost without any error.
        """
        if self._opened is not None and self._look() != self._opened:
            removed = self._fd is not None and os.fstat(self._fd).st_nlink == 0
            kind = FileRemoved if removed else FileMoved
            raise kind("the file was moved or removed while it was open")

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _hold(self) -> int | None:
        """A descriptor that only tells how many names the file has; None where there are none.

        An ordinary descriptor would not do: closing it drops the locks that SQLite holds.
        """
        flags = getattr(os, "O_PATH", None)
        try:
            return None if flags is None else os.open(self._path, flags)
        except OSError:
            return None


@contextmanager
def locked(fd: int) -> Iterator[None]:
    """Hold a lock on an open file. Windows has no such lock: one process to a file there."""
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
def folder_locked(path: str) -> Iterator[None]:
    """Hold a lock on the folder of *path*; the lock is the same before and after a move."""
    if os.name == "nt":  # Windows does not move a file that is open.
        yield
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    with ExitStack() as stack:
        stack.callback(os.close, folder)
        with suppress(OSError):  # Some network file systems have no such lock.
            stack.enter_context(locked(folder))
        yield
