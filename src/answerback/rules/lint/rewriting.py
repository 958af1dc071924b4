"""Replaces a file's content with its repaired copy, without losing any of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from shutil import copyfileobj
from typing import IO

from ...errors import AnswerbackError


class CannotRewrite(AnswerbackError):
    """The file may not be repaired, or was written to while it was read."""

    code = "CANNOT_REWRITE"


def rewrite_file(
    path: str, source: IO[bytes], write: Callable[[IO[bytes]], bool], *, force: bool = False
) -> None:
    """Have *write* fill a copy beside *path*; it replaces *path* if *write* returns True.

    *source* is the open file, still unread. Raises CannotRewrite.
    """
    target = os.path.realpath(path)
    before = os.fstat(source.fileno())
    if not force:
        _check_allowed(path, target, before)
    # The name is known before the file exists, so an interrupt at any time deletes the file.
    name = os.path.join(os.path.dirname(target), f".answerback-{os.urandom(8).hex()}")
    try:
        with open(name, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as copy:
            is_changed = write(copy)
        if is_changed:
            if _version(os.stat(target)) != _version(before):
                raise CannotRewrite(f"{path} was written to meanwhile, and was not repaired")
            _replace(target, name, before)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _check_allowed(path: str, target: str, found: os.stat_result) -> None:
    # Root may write to every file, so the permission bits are read too.
    is_read_only = not found.st_mode & 0o222 or not os.access(target, os.W_OK)
    reason = "is read-only" if is_read_only else ""
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        reason = "belongs to another user"
    if reason:
        raise CannotRewrite(f"{path} {reason}, and was not repaired; --force repairs it anyway")


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _replace(target: str, copy: str, before: os.stat_result) -> None:
    if before.st_nlink > 1:
        _overwrite(target, copy)
        return
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # Only root can keep the owner of another user's file.
            os.chown(copy, before.st_uid, before.st_gid)
    os.chmod(copy, stat.S_IMODE(before.st_mode))
    os.replace(copy, target)


def _overwrite(target: str, copy: str) -> None:
    """Write in place, because a file with several names must stay one file.

    An error in the middle leaves the target incomplete, so the copy is then kept.
    """
    try:
        with open(copy, "rb") as source, open(target, "r+b") as file:
            copyfileobj(source, file)
            file.truncate()
    except OSError as exc:
        kept = f"{target}.repaired"
        os.replace(copy, kept)
        raise CannotRewrite(f"{target}: {exc.strerror}; {kept} has its whole content") from None
