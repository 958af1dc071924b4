"""Ends a child process and its descendants when this process is gone, however it ended.

A shell waits for the end of a pipe whose other end only this process has. If the pipe closes
without a message, this process was killed, and the shell kills the child's process group.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

_SHELL = "/bin/sh"
_SCRIPT = 'read -r group || exit 0; read -r word || kill -s KILL -- "-$group"'


class ChildWatch:
    """Watches one child's process group. Without a shell, as on Windows, it does nothing."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._group: int | None = None
        if os.name == "posix" and os.access(_SHELL, os.X_OK):
            self._shell = subprocess.Popen(
                [_SHELL, "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C at a terminal must not end it before the child.
                start_new_session=True,
                bufsize=0,
            )

    def begin(self, pid: int) -> None:
        """Watch the child *pid*, which is the leader of its process group."""
        self._group = pid
        self._write(b"%d\n" % pid)

    def end_group(self, number: int) -> None:
        """Send a signal to the child and its descendants."""
        if self._group is not None and os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)

    def close(self) -> None:
        """Kill what is left of the group, and end the shell."""
        if os.name == "posix":
            self.end_group(signal.SIGKILL)
        has_begun, self._group = self._group is not None, None
        shell, self._shell = self._shell, None
        if shell is None or shell.stdin is None:
            return
        with suppress(OSError):
            shell.stdin.write(b"done\n" if has_begun else b"0\ndone\n")
        with suppress(OSError):
            shell.stdin.close()
        # The shell ends at once, because both of its lines are there.
        shell.wait()

    def _write(self, line: bytes) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(line)
