"""Several processes behind one socket: forked from one that has loaded the app already."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

_QUICK = 1.0
"""A worker that lives less long than this, in seconds, did not start."""


def prefork(count: int, work: Callable[[], None]) -> int:
    """Keep *count* processes at work until a signal ends them; the exit status."""
    return _Workers(count, work).run()


class _Workers:
    def __init__(self, count: int, work: Callable[[], None]) -> None:
        self._count = count
        self._work = work
        self._born: dict[int, float] = {}
        self._ending = False
        self._status = 0

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        for _ in range(self._count):
            self._start()
        while self._born:
            pid, status = os.wait()
            self._mourn(pid, os.waitstatus_to_exitcode(status))
        return self._status

    def _start(self) -> None:
        pid = os.fork()
        if pid == 0:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os._exit(self._work_to_the_end())
        self._born[pid] = time.monotonic()

    def _work_to_the_end(self) -> int:
        try:
            self._work()
        except KeyboardInterrupt:
            return 0
        except BaseException:  # noqa: BLE001 -- the last thing this process does
            sys.excepthook(*sys.exc_info())
            return 1
        return 0

    def _mourn(self, pid: int, status: int) -> None:
        lived = time.monotonic() - self._born.pop(pid)
        if self._ending:
            return
        if lived < _QUICK:
            sys.stderr.write(f"worker {pid} ended with {status} before it served; giving up\n")
            self._status = 1
            self._end(signal.SIGTERM, None)
        else:
            sys.stderr.write(f"worker {pid} ended with {status}; another takes its place\n")
            self._start()

    def _end(self, number: int, _: FrameType | None) -> None:
        self._ending = True
        for pid in list(self._born):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
