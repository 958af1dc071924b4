"""`serve --reload`: the server runs in a child process, which is replaced when a file changes.

The parent holds the listening socket. Clients that connect while no child is serving wait for the
next one, so no connection is refused during a restart.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib.util import cache_from_source
from typing import NamedTuple

from .listening import CannotListen, end_with_parent, write_line

_CHILD = "ANSWERBACK_RELOAD"
"""The environment variable that marks a process as the child of a reloading parent."""
_POLL_SECONDS = 0.25
# Editors write a file in several steps, so files that change are scanned again after this time.
_SETTLE_SECONDS = 0.05
# The pause after a scan is at least this many times as long as the scan.
_SCAN_SHARE = 10
# How long running calls have to finish before a restart.
_DRAIN_SECONDS = 5.0
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})


class Inherited(NamedTuple):
    """The values that a child process receives from its parent."""

    listener: socket.socket
    is_first: bool
    """Whether this is the first child to serve."""


def inherited() -> Inherited | None:
    """Return the inherited values, if this process is the child of a reloading parent."""
    given = os.environ.pop(_CHILD, "")
    if not given:
        return None
    listener, parent, number = map(int, given.split(","))
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    return Inherited(socket.socket(fileno=listener), number == 0)


def serve_and_reload(listener: socket.socket, folder: str) -> int:
    """Serve until a signal arrives, and return the exit status.

    The child runs this program with the same command line. It is replaced when a Python file in
    *folder* changes.
    """
    if os.name != "posix":
        raise CannotListen("--reload needs a POSIX system; leave it out")
    write_line(f"watching the Python files in {folder}")
    return _Supervisor(listener, folder).run()


class _Supervisor:
    """Starts, replaces and stops the child."""

    def __init__(self, listener: socket.socket, folder: str) -> None:
        self._listener = listener
        self._folder = folder
        self._pipe, self._parent_end = os.pipe()
        self._started = 0
        self._received = 0
        # Scanned before the child reads the files, so that no change is missed.
        self._files = python_files(folder)
        self._child = self._start()

    def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        end_was_reported = False
        now = self._files
        while not self._received:
            start, before = time.monotonic(), now
            now = python_files(self._folder)
            if now != before:
                time.sleep(_SETTLE_SECONDS)
                continue
            if now != self._files:
                paths = sorted(now.keys() | self._files.keys())
                changed = [path for path in paths if now.get(path) != self._files.get(path)]
                self._files = now
                end_was_reported = not self._replace_child(changed) and end_was_reported
            elif not end_was_reported and (status := self._child.poll()) is not None:
                end_was_reported = True
                write_line(f"the program ended with status {status}; waiting for a change")
            time.sleep(max(_POLL_SECONDS, (time.monotonic() - start) * _SCAN_SHARE))
        self._child.wait()
        return 128 + self._received if self._received == signal.SIGINT else 0

    def _replace_child(self, changed: list[str]) -> bool:
        """Start another child, unless a file has a syntax error; return whether one was started."""
        if error := _syntax_error(changed):
            is_served = self._child.poll() is None
            rest = "; still serving the previous version" if is_served else ""
            write_line(f"{error}\nwaiting for a change{rest}")
            return False
        names = ", ".join(os.path.relpath(path, self._folder) for path in changed[:3])
        write_line(f"{names} changed; reloading")
        # Python compares bytecode timestamps in seconds, so after two changes within a second, it
        # would run the old bytecode.
        for path in changed:
            with suppress(OSError, NotImplementedError):
                os.unlink(cache_from_source(path))
        self._child.terminate()
        try:
            self._child.wait(_DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        if not self._received:
            self._child = self._start()
        return True

    def _start(self) -> subprocess.Popen[bytes]:
        descriptors = (self._listener.fileno(), self._pipe)
        # A child must not leave behind bytecode that looks newer than a change.
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        environ[_CHILD] = f"{descriptors[0]},{descriptors[1]},{self._started}"
        self._started += 1
        command = [sys.executable, *sys.orig_argv[1:]]
        return subprocess.Popen(command, env=environ, pass_fds=descriptors)

    def _stop(self, number: int, frame: object) -> None:
        # A terminal also sends Ctrl-C to the child, which then ignores SIGTERM.
        again = self._received == number == signal.SIGINT
        self._received = number
        self._child.send_signal(signal.SIGINT if again else signal.SIGTERM)


def python_files(folder: str) -> dict[str, tuple[int, int]]:
    """Return each Python file's modification time and size, without hidden folders and the like."""
    found = {}
    for place, folders, names in os.walk(folder):
        if place != folder and "pyvenv.cfg" in names:
            folders.clear()  # An environment with other people's packages.
            continue
        folders[:] = [name for name in folders if name[0] != "." and name not in _SKIPPED_FOLDERS]
        for path in (os.path.join(place, name) for name in names if name.endswith(".py")):
            with suppress(OSError):  # It may have been removed in the meantime.
                status = os.stat(path)
                if stat.S_ISREG(status.st_mode):  # Reading a pipe would block forever.
                    found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _syntax_error(paths: list[str]) -> str:
    """Return the message about the first file with a syntax error; empty if there is none."""
    for path in paths:
        try:
            with open(path, "rb") as file:
                compile(file.read(), path, "exec", dont_inherit=True)
        except OSError:  # It was removed.
            continue
        except (SyntaxError, ValueError, MemoryError, RecursionError) as exc:
            lines = traceback.format_exception_only(exc)
            if not isinstance(exc, SyntaxError):  # It does not name the file.
                lines.insert(0, f"{path} cannot be compiled\n")
            return "".join(lines).rstrip()
    return ""
