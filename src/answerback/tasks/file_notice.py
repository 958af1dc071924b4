"""FileNotice: waits until a file is written, by whichever process.

On Linux the kernel tells (inotify), so that waiting costs nothing and ends at once. On other
systems the one who waits looks again after a short time.
"""

from __future__ import annotations

import os
import select
import sys
from time import sleep

_IN_MODIFY = 0x2
_IN_NONBLOCK = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0
_IN_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_SHORT = 0.02
"""The seconds between two looks where the kernel does not tell."""


class FileNotice:
    """For one thread; *path* must exist."""

    def __init__(self, path: str) -> None:
        self._descriptor = _watch(path)

    def wait(self, seconds: float, *, urgent: bool) -> None:
        """Wait until the file was written, at most *seconds*; it may return without a reason.

        Without help of the kernel it returns sooner if it is *urgent*.
        """
        if self._descriptor is None:
            sleep(_SHORT if urgent else min(10 * _SHORT, seconds))
        elif select.select([self._descriptor], [], [], seconds)[0]:
            os.read(self._descriptor, 65536)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _watch(path: str) -> int | None:
    """A descriptor that becomes readable when the file is written; None if there is no inotify."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        descriptor: int = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
    except (OSError, AttributeError):
        return None
    if descriptor < 0:
        return None
    if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(descriptor)
        return None
    return descriptor
