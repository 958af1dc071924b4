"""UsedFiles: remembers the redeemed links' tokens, for all processes on a machine."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from ..core.authentication import UsedTokens
from ..errors import AnswerbackError

if TYPE_CHECKING:
    from ..state.shared import SharedState

_SPARE = 86_400
"""Seconds that a file is kept after its token has expired: the clock may be set back later."""


class UnsafeDirectory(AnswerbackError):
    """Users other than this process's can write into a directory."""

    code = "BAD_SETTING"


def used_tokens_in(state: SharedState | None) -> UsedTokens:
    """Return what remembers used tokens: the hosts' shared state, or else files of this machine."""
    if state is None:
        return UsedFiles()
    from .used_rows import UsedRows

    return UsedRows(state)


class UsedFiles:
    """Keeps an empty file for each used token, in a directory that no other user can open.

    Creating a file is atomic, so that only one of a machine's workers accepts a token. By default
    *directory* is in the system's temporary directory.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = None if directory is None else os.fspath(directory)

    def add(self, token: bytes, expires: int) -> bool:
        directory = self._opened()
        self._remove_expired(directory)
        path = os.path.join(directory, sha256(token).hexdigest())
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        os.utime(path, (expires, expires))
        return True

    def _opened(self) -> str:
        directory = self._directory or _default_directory()
        with suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        found = os.lstat(directory)
        is_ours = not hasattr(os, "getuid") or (
            found.st_uid == os.getuid() and not found.st_mode & 0o077
        )
        if not stat.S_ISDIR(found.st_mode) or not is_ours:
            raise UnsafeDirectory(
                f"{directory} must be a directory of this user alone; remove it, or give "
                "App(access=Access(used_tokens=UsedFiles('/a/directory/of/yours')))"
            )
        return directory

    def _remove_expired(self, directory: str) -> None:
        now = time.time()
        with os.scandir(directory) as files:
            for each in files:
                # Another process may remove the same file.
                with suppress(OSError):
                    if each.stat().st_mtime + _SPARE < now:
                        os.unlink(each.path)


def _default_directory() -> str:
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else "user"
    return os.path.join(tempfile.gettempdir(), f"answerback-used-{user}")
