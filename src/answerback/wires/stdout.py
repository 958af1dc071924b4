"""Keeps fd 0 and fd 1 for a wire's own bytes.

Whatever a tool, its subprocess or a C library writes to fd 1 goes to stderr; what they read from
fd 0 is empty.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress


class Stdout:
    """What was fd 1 when the process started. Subprocesses do not inherit it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def is_terminal(self) -> bool:
        return os.isatty(self._fd)

    def write(self, data: bytes) -> None:
        """Write all of *data*; raises BrokenPipeError when nobody reads any more."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                # Some parents, such as Node, hand over a pipe that does not wait.
                self._wait()

    def _wait(self) -> None:
        import select

        select.select([], [self._fd], [])

    def is_broken(self) -> bool:
        """Whether nobody reads any more."""
        import select

        poll = select.poll()
        poll.register(self._fd, 0)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Tell the reader that this was all, however long the process stays."""
        os.close(self._fd)


def take_stdout() -> Stdout:
    """Take fd 1 for the rest of the process, and let stderr stand in its place.

    It is not given back: what a tool has left running may still print.
    """
    _fill_gaps()
    own = os.dup(1)
    os.dup2(2, 1)
    # After the change, so that what was printed and not yet written goes to stderr too.
    if hasattr(sys.stdout, "reconfigure"):
        with suppress(OSError):
            sys.stdout.reconfigure(line_buffering=True)
    return Stdout(own)


def take_stdin() -> int:
    """Take fd 0 for the rest of the process, and let an empty file stand in its place.

    Gives the descriptor to read from; subprocesses do not inherit it.
    """
    _fill_gaps()
    own = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return own


def _fill_gaps() -> None:
    """Open what the parent closed, else the next file opened anywhere would be fd 0 or fd 1."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # Gets the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
