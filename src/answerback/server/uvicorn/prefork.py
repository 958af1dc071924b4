"""Worker processes that share one listening socket, forked from a process that loaded the app."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import glob
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from types import ModuleType

from ...core.signing import process_signer
from ...errors import AnswerbackError

_FOLDER, _LOCK = "answerback-", "server.lock"
# Only a system with fork has workers, and it has this signal.
STOP_NOW = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""Ends a worker as SIGTERM does, but without `--drain`."""
RunWorker = Callable[[int, Callable[[], None]], None]
"""Runs a worker until it exits, given its number and a function to call once it serves."""


def prefork(
    count: int,
    run: RunWorker,
    listener: socket.socket,
    ending: str,
    *,
    started: Callable[[], None],
) -> int:
    """Run *count* workers until a signal ends them, and return the exit status.

    A worker that exits is replaced by one with the same number. The file *ending* tells workers
    that all of them end.
    """
    process_signer()  # Made before the fork, so that each worker accepts the others' links.
    awaited = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    # Blocked and waited for, so that no signal arrives between a fork and storing its pid.
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    # Without a handler some systems discard SIGCHLD, even if it is blocked.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    workers = _Workers(run, awaited)
    for number in range(count):
        workers.start(number)
    started()
    while workers.running:
        received = signal.sigwait(awaited)
        if received == signal.SIGCHLD:
            workers.reap_exited()
        else:
            # The workers close theirs as they end. An open one here would still let clients
            # connect, and no process would answer them.
            listener.close()
            open(ending, "wb").close()
            workers.stop(received)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
    return workers.status


@contextmanager
def worker_folder() -> Iterator[str]:
    """Yield a private folder for what the workers share; it is removed at the end.

    A killed server leaves its folder behind, and the next server removes it. Each folder has a
    file that is locked while a process of its server runs.
    """
    import fcntl

    _remove_leftovers(fcntl)
    with TemporaryDirectory(prefix=_FOLDER) as folder:
        lock = os.path.join(folder, _LOCK)
        with open(f"{lock}.new", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # It gets its name only now, so that no other server finds it without a lock.
            os.rename(f"{lock}.new", lock)
            yield folder


def _remove_leftovers(fcntl: ModuleType) -> None:
    for folder in glob(os.path.join(gettempdir(), f"{_FOLDER}*")):
        # It may be removed meanwhile, have no lock, or be in use.
        with suppress(OSError):
            if os.lstat(folder).st_uid == os.getuid():
                with open(os.path.join(folder, _LOCK), "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    rmtree(folder, ignore_errors=True)


class _Workers:
    def __init__(self, run: RunWorker, awaited: set[signal.Signals]) -> None:
        self._run = run
        self._awaited = awaited
        self._stopping = False
        self.running: dict[int, int] = {}
        """The number of each worker, by its pid."""
        self.status = 0
        # A worker writes its pid to this pipe once it serves.
        self._ready_reader, self._ready_writer = os.pipe()
        os.set_blocking(self._ready_reader, False)
        self._ready: set[int] = set()
        # A pipe that is never written. When the parent dies its end closes, and every worker
        # that is blocked in `read` exits.
        self._parent_reader, self._parent_writer = os.pipe()

    def start(self, number: int) -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(self._run_worker(number))
        self.running[pid] = number

    def _run_worker(self, number: int) -> int:
        """Run in the child process, and return its exit status."""
        try:
            os.close(self._parent_writer)
            for awaited in self._awaited:
                signal.signal(awaited, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._awaited)
            threading.Thread(target=self._exit_with_parent, daemon=True).start()
            self._run(number, self._report_ready)
        except SystemExit as exit:
            return int(exit.code in (1, True))
        except KeyboardInterrupt:
            return 0
        except AnswerbackError as exc:
            sys.stderr.write(f"worker {os.getpid()}: {exc}\n")
            return 1
        except BaseException:  # noqa: BLE001 -- the last thing this process does
            sys.excepthook(*sys.exc_info())
            return 1
        return 0

    def _report_ready(self) -> None:
        os.write(self._ready_writer, os.getpid().to_bytes(8, "big"))

    def _exit_with_parent(self) -> None:
        os.read(self._parent_reader, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def reap_exited(self) -> None:
        """Collect the workers that have exited, and start replacements."""
        self._ready.update(_read_pids(self._ready_reader))
        for pid in list(self.running):
            exited, status = os.waitpid(pid, os.WNOHANG)
            if exited:
                self._replace(pid, self.running.pop(pid), os.waitstatus_to_exitcode(status))

    def _replace(self, pid: int, number: int, status: int) -> None:
        if self._stopping:
            # Such as a lifespan that failed at its end; the worker has logged it.
            self.status = self.status or int(status == 1)
            return
        if pid in self._ready:
            self._ready.remove(pid)
            sys.stderr.write(f"worker {pid} exited with status {status}; starting another\n")
            self.start(number)
        else:
            # A replacement would most likely fail in the same way.
            sys.stderr.write(
                f"worker {pid} exited with status {status} before it was ready; shutting down\n"
            )
            self.status = 1
            self.stop(STOP_NOW)

    def stop(self, received: int) -> None:
        """Stop all workers. Those that drain at the first SIGTERM stop at any other signal.

        At a second SIGINT they do not wait for running calls.
        """
        sent = STOP_NOW
        if received == signal.SIGTERM and not self._stopping:
            sent = signal.SIGTERM
        elif received == signal.SIGINT and self._stopping:
            sent = signal.SIGINT
        if received == signal.SIGINT:
            self.status = 128 + received
        self._stopping = True
        for pid in self.running:
            with suppress(ProcessLookupError):
                os.kill(pid, sent)


def _read_pids(pipe: int) -> set[int]:
    written = b""
    with suppress(BlockingIOError):
        while chunk := os.read(pipe, 4096):
            written += chunk
    return {int.from_bytes(written[at : at + 8], "big") for at in range(0, len(written), 8)}
