"""The serving process: its standard streams and its interpreter's settings.

stdin (fd 0) and stdout (fd 1) are reserved for the wire. Anything that a tool, its subprocess or a
C library prints goes to stderr, and their stdin is empty.

The garbage collection and thread settings affect the whole process, so only the `serve`, `mcp` and
`call` commands apply them, and an author or the environment can turn them off.
`python -m bench settings` shows the effect: 10 MB of typed records take 0.53 to 0.59 times the CPU
time, calls over 1,000 connections 0.82 to 0.93 times, and a quick call alongside two busy threads
waits 0.07 to 0.12 times as long; calls over 32 connections take 1.11 to 1.13 times the CPU time.
All settings were measured together.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import select


_WRITABLE = 4
"""`select.POLLOUT`."""


class Stdout:
    """The stdout that the process was started with. Subprocesses do not inherit it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._ready: select.poll | None = None

    @property
    def is_terminal(self) -> bool:
        return os.isatty(self._fd)

    def write(self, data: bytes) -> None:
        """Write all of *data*; raises BrokenPipeError if the reader has closed the pipe."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                # Some parents, such as Node, pass a non-blocking pipe.
                import select

                select.select([], [self._fd], [])

    def write_if_ready(self, data: bytes) -> bool:
        """Write a few bytes if that does not block; return False otherwise, and on Windows."""
        if self._ready is None:
            self._ready = self._poll(_WRITABLE)
        if self._ready is None or not self._ready.poll(0):
            return False
        self.write(data)
        return True

    def is_broken(self) -> bool:
        """Return whether the reader has closed the pipe; False on Windows."""
        # A new object, because two threads must not use one at the same time.
        poll = self._poll(0)
        return poll is not None and bool(poll.poll(0))

    def _poll(self, events: int) -> select.poll | None:
        import select

        if not hasattr(select, "poll"):
            return None
        poll = select.poll()
        poll.register(self._fd, events)
        return poll

    def detach(self) -> None:
        """Discard what is written from now on."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._fd, inheritable=False)
        os.close(nowhere)

    def close(self) -> None:
        """Close the pipe: the reader sees the end of the output, even if the process continues."""
        os.close(self._fd)


def take_stdout() -> Stdout:
    """Take over fd 1 for the life of the process; from then on, fd 1 is stderr.

    This is permanent, because a thread that a tool left running may still print.
    """
    _open_closed_streams()
    own = os.dup(1)
    os.dup2(2, 1)
    # This flushes `sys.stdout`; fd 1 is already stderr, so buffered output goes there.
    if hasattr(sys.stdout, "reconfigure"):
        with suppress(OSError):
            sys.stdout.reconfigure(line_buffering=True)
    return Stdout(own)


def take_stdin() -> int:
    """Take over fd 0 for the life of the process; from then on, fd 0 is an empty file.

    Returns the descriptor to read from; subprocesses do not inherit it.
    """
    _open_closed_streams()
    own = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return own


def keep_stderr() -> None:
    """Keep stderr usable for the log, even after a tool has closed it."""
    found = sys.__stderr__
    if found is None or sys.stderr is not found:
        return  # It is closed, or the author has replaced it.
    own = io.FileIO(os.dup(2), "w", closefd=False)
    sys.stderr = _KeptStderr(
        io.BufferedWriter(own),
        encoding=found.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


class _KeptStderr(io.TextIOWrapper):
    """A stderr that ignores `close()`."""

    def close(self) -> None:
        self.flush()


def _open_closed_streams() -> None:
    """Open /dev/null for each stream that the parent closed.

    Otherwise the next file opened would get its descriptor, and output would go to that file.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # open() returns the lowest free descriptor, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


_OFF = "ANSWERBACK_TUNE"
_GC_THRESHOLD = 20_000
_DEFAULT_SWITCH_INTERVAL = 0.005
_SWITCH_INTERVAL = 0.0005


def collect_garbage_less_often() -> None:
    """Exempt all existing objects from collection, and collect others less often."""
    if os.environ.get(_OFF) == "0":
        return
    gc.freeze()
    first, *others = gc.get_threshold()
    # An author may have turned collection off (0), or set a higher threshold.
    if 0 < first < _GC_THRESHOLD:
        gc.set_threshold(_GC_THRESHOLD, *others)


def switch_threads_sooner() -> None:
    """Shorten the thread switch interval, so that quick calls wait less for busy threads."""
    if os.environ.get(_OFF) != "0" and sys.getswitchinterval() == _DEFAULT_SWITCH_INTERVAL:
        sys.setswitchinterval(_SWITCH_INTERVAL)
