"""Creates private files, and detects open files that were moved, deleted or emptied."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

_ALL_USERS = 0o007


def make_private(path: str) -> None:
    """Create a file that only its owner can open, or restrict one that all users can open.

    A file that only its group can open is left alone, because that was set on purpose.
    """
    # For a dangling link, the file is created where the link points.
    target = os.path.realpath(path)
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        # Do not open it: closing it would drop this process's SQLite locks.
        # SQLite may have left files next to it.
        for each in (target, *(target + ending for ending in ("-journal", "-wal", "-shm"))):
            # It may not exist, or may belong to another user.
            with suppress(OSError):
                mode = os.stat(each).st_mode
                if stat.S_ISREG(mode) and mode & _ALL_USERS:
                    os.chmod(each, 0o600)


class FileMoved(FileNotFoundError):
    """The open file is no longer at its path. A new file can be opened there immediately."""


class FileRemoved(FileMoved):
    """The open file was deleted. Its content is lost when it is closed."""


class FileEmptied(FileMoved):
    """The open file was emptied, for example by logrotate's `copytruncate` after copying it."""


class FileIdentity:
    """The device and inode that a path had when its file was opened.

    If `os.stat` failed at that time, `check` never raises.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened = self._stat()
        self._fd: int | None = None
        # The descriptor is used only to count links. Closing an ordinary one would drop SQLite's
        # locks, so there is none on a system without O_PATH.
        flags = getattr(os, "O_PATH", None)
        if flags is not None:
            with suppress(OSError):
                self._fd = os.open(path, flags)

    def check(self) -> None:
        """Raise FileRemoved if the file was deleted, or FileMoved if it is no longer at its path.

        Data written to a deleted file is lost without an error. If the number of links cannot
        be read, a deleted file counts as moved.
        """
        if self._opened is not None and self._stat() != self._opened:
            removed = self._fd is not None and os.fstat(self._fd).st_nlink == 0
            kind = FileRemoved if removed else FileMoved
            raise kind("the file was moved or removed while it was open")

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino
