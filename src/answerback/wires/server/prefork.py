"""Several processes behind one socket: forked from one that has loaded the app already."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

Work = Callable[[int, Callable[[], None]], None]
"""What a worker does; it is given its place, and what to call when it serves."""


def prefork(count: int, work: Work, listener: socket.socket, *, started: Callable[[], None]) -> int:
    """Keep *count* processes at work until a signal ends them; the exit status."""
    awaited = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    # Signals are waited for, not handled: none can come between a fork and our knowing of it.
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    # The default is to drop it, blocked or not, on some systems.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    workers = _Workers(work, awaited)
    for place in range(count):
        workers.start(place)
    started()
    while workers.alive:
        number = signal.sigwait(awaited)
        if number == signal.SIGCHLD:
            workers.bury()
        else:
            # They close theirs when they end; a caller must not be let in to nobody.
            listener.close()
            workers.end(number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
    return workers.status


class _Workers:
    def __init__(self, work: Work, awaited: set[signal.Signals]) -> None:
        self._work = work
        self._awaited = awaited
        self._ending = False
        self.alive: dict[int, int] = {}
        """The place of each, by its process."""
        self.status = 0
        # A worker says by its number that it serves.
        self._hear, self._say = os.pipe()
        os.set_blocking(self._hear, False)
        self._serving: set[int] = set()
        # Nothing is ever said here: it ends with this process, and so do those who listen.
        self._parent_ends, self._parent_lives = os.pipe()

    def start(self, place: int) -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(self._work_to_the_end(place))
        self.alive[pid] = place

    def _work_to_the_end(self, place: int) -> int:
        try:
            os.close(self._parent_lives)
            for number in self._awaited:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._awaited)
            threading.Thread(target=self._leave_with_parent, daemon=True).start()
            self._work(place, lambda: _write(self._say, os.getpid()))
        except (KeyboardInterrupt, SystemExit):
            return 0
        except BaseException:  # noqa: BLE001 -- the last thing this process does
            sys.excepthook(*sys.exc_info())
            return 1
        return 0

    def _leave_with_parent(self) -> None:
        os.read(self._parent_ends, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def bury(self) -> None:
        """See which have ended, and put others in their places."""
        self._serving.update(_read(self._hear))
        for pid in list(self.alive):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._replace(pid, self.alive.pop(pid), os.waitstatus_to_exitcode(status))

    def _replace(self, pid: int, place: int, status: int) -> None:
        if self._ending:
            return
        if pid in self._serving:
            self._serving.remove(pid)
            sys.stderr.write(f"worker {pid} ended with {status}; another takes its place\n")
            self.start(place)
        else:
            sys.stderr.write(f"worker {pid} ended with {status} before it served; giving up\n")
            self.status = 1
            self.end(signal.SIGTERM)

    def end(self, number: int) -> None:
        """Ask them to end; a second Ctrl-C is passed on, and does not wait for what is running."""
        again = self._ending and number == signal.SIGINT
        if number == signal.SIGINT:
            self.status = 128 + number
        self._ending = True
        for pid in self.alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT if again else signal.SIGTERM)


def _write(pipe: int, pid: int) -> None:
    os.write(pipe, pid.to_bytes(8, "big"))


def _read(pipe: int) -> set[int]:
    said = b""
    with suppress(BlockingIOError):
        while part := os.read(pipe, 4096):
            said += part
    return {int.from_bytes(said[at : at + 8], "big") for at in range(0, len(said), 8)}
