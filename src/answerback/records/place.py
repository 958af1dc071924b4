"""A file by its name: whether the one that is open is still the one that others will find."""

from __future__ import annotations

import os


class Place:
    """Made when the file is opened; one that cannot be looked at is never missed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened = self._look()

    def check(self) -> None:
        """Raises FileNotFoundError: what is written to a file that was removed is lost unseen."""
        if self._opened is not None and self._look() != self._opened:
            raise FileNotFoundError("the file was moved or removed while it was open")

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino
