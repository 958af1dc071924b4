"""A file by its name: whether the one that is open is still the one that others will find."""

from __future__ import annotations

import os


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
