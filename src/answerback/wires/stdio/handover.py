"""Hands reading over between threads: fast and unusual code, kept apart from the server.

Leader and followers: one thread at a time reads. When it has read a message that may take
long, it lets another thread read and answers the message itself. So a call changes no thread,
and many calls run at once.

Waking another thread costs more than most tools do. So the reading thread runs a tool itself
if its last call was brief, and a watching thread takes the reading away if it is not this time.

Each call has a thread. Threads that wait for the reading stay, up to a limit; the others end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from ...calls.failures import log_internal_error
from ...mcp.connection import Job

BRIEF = 0.002
"""Seconds that a tool may run while its thread keeps the reading."""
IDLE_LOOKS = 500
"""The watching thread sleeps after so many looks without a call."""


class Readers:
    """The threads that read lines and answer them, until *ended* is set.

    *read_line* returns None at the end of the input. *receive* answers a line, or returns the
    job of answering it if that may take long. At most *max_idle* threads wait for the reading.
    """

    def __init__(
        self,
        read_line: Callable[[], bytes | None],
        receive: Callable[[bytes], Job | None],
        ended: threading.Event,
        max_idle: int,
    ) -> None:
        self._read_line = read_line
        self._receive = receive
        self._ended = ended
        self._max_idle = max_idle
        self.failure: Exception | None = None
        """The reason why the reading ended, if it was not the end of the input."""
        self._reading = threading.Lock()
        self._waiting = 0
        self._brief: set[str] = set()
        """The tools whose last call was brief."""
        self._watch = _BriefCalls(self._hand_over)
        self._idle = threading.Condition()
        self._busy = 0

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def wait_until_answered(self, give_up: Callable[[], bool]) -> None:
        """Wait until no job runs, or until *give_up* says so."""
        with self._idle:
            while self._busy and not give_up():
                self._idle.wait(0.1)

    def _follow(self) -> None:
        while not self._ended.is_set() and self._wait_for_reading():
            job = self._lead()
            if job is not None:
                self._work(job)

    def _wait_for_reading(self) -> bool:
        """Take the reading; False if enough threads wait for it."""
        with self._idle:
            if self._waiting >= self._max_idle:
                return False
            self._waiting += 1
        self._reading.acquire()
        with self._idle:
            self._waiting -= 1
        return True

    def _lead(self) -> Job | None:
        """Read until there is a job that may take long, then hand the reading over."""
        while not self._ended.is_set():
            line = self._next_line()
            if line is None:
                self._ended.set()
                break
            job = self._receive(line)
            if job is None:
                continue
            # Counted before the hand-over, because the next reader may come to the end at once.
            with self._idle:
                self._busy += 1
            if job.tool not in self._brief:
                self._hand_over()
                return job
            if not self._watch.run_as_leader(partial(self._work, job)):
                return None  # The call took long, and another thread reads now.
        self._reading.release()
        return None

    def _next_line(self) -> bytes | None:
        try:
            return self._read_line()
        except Exception as exc:  # noqa: BLE001 -- whatever ends the reading ends the server
            self.failure = exc
            return None

    def _hand_over(self) -> None:
        self._reading.release()
        if not self._waiting:
            # If the system has no more threads, the next thread that is done with its call reads.
            with suppress(RuntimeError):
                self.start()

    def _work(self, job: Job) -> None:
        began = time.perf_counter()
        try:
            job.run()
        except Exception:  # noqa: BLE001 -- a bug of ours ends one response, not the reading
            log_internal_error("a response")
        finally:
            brief = time.perf_counter() - began < BRIEF
            self._brief.add(job.tool) if brief and job.tool else self._brief.discard(job.tool)
            with self._idle:
                self._busy -= 1
                self._idle.notify()


class _BriefCalls:
    """Lets the reading thread run brief calls, and takes the reading away if one is not."""

    def __init__(self, hand_over: Callable[[], None]) -> None:
        self._hand_over = hand_over
        self._lock = threading.Lock()
        self._number = 0
        self._running = False
        self._last_seen = -1
        self._needed = threading.Event()
        self._started = False

    def run_as_leader(self, work: Callable[[], None]) -> bool:
        """Do the work; True if the thread still has the reading afterwards."""
        if not self._needed.is_set():
            self._wake()
        self._number += 1
        number = self._number
        self._running = True
        work()
        with self._lock:
            kept = self._running and self._number == number
            if kept:
                self._running = False
            return kept

    def _wake(self) -> None:
        self._needed.set()
        if not self._started:
            self._started = True
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        idle = 0
        while True:
            time.sleep(BRIEF)
            with self._lock:
                late = self._running and self._number == self._last_seen
                idle = 0 if self._running or self._number != self._last_seen else idle + 1
                self._last_seen = self._number
                if late:
                    self._running = False
            if late:
                self._hand_over()
            elif idle > IDLE_LOOKS:
                # No call comes, so sleep until one does.
                self._needed.clear()
                self._needed.wait()
                idle = 0
