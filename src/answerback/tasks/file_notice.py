"""FileNotice: waits until any process writes a file.

On Linux the kernel reports writes (inotify), so waiting costs nothing and ends at once. Other
systems poll the file after a short time.
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
"""The seconds between polls where the kernel does not report writes."""


class FileNotice:
    """A watch on *path*, which must exist; for one thread."""

    def __init__(self, path: str) -> None:
        self._descriptor = _watch(path)

    def wait(self, seconds: float, *, is_urgent: bool) -> None:
        """Wait until the file is written, at most *seconds*; may return early for no reason.

        Without the kernel's help it returns sooner if *is_urgent*.
        """
        if self._descriptor is None:
            sleep(_SHORT if is_urgent else min(10 * _SHORT, seconds))
        elif select.select([self._descriptor], [], [], seconds)[0]:
            os.read(self._descriptor, 65536)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _watch(path: str) -> int | None:
    """Return a descriptor that becomes readable when the file is written; None without inotify."""
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
