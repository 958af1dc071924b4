"""Files that no other user can read."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

_ALL_USERS = 0o007


def make_private(path: str, *, beside: tuple[str, ...] = ()) -> None:
    """Create the file for its owner only, or close an existing one that all users can open.

    *beside* are the endings of files that SQLite may have left beside it. A file that is open only
    to its group stays so: somebody chose that.
    """
    # The file of a dangling link is created where the link points.
    target = os.path.realpath(path)
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        # It is not opened: closing it would drop SQLite's locks of this process.
        for each in (target, *(target + ending for ending in beside)):
            _close_to_all_users(each)


def _close_to_all_users(path: str) -> None:
    # It may not exist, or belong to another user.
    with suppress(OSError):
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode) and mode & _ALL_USERS:
            os.chmod(path, 0o600)
