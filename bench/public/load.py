"""The load generator, a process of its own: users on keep-alive connections, in one event loop.

It reads a `Job` from stdin, and prints a `Measured` or the first wrong answer.
"""

from __future__ import annotations

import heapq
import select
import socket
import sys
import time
from collections import defaultdict

import msgspec

from .contenders import ECHO_WORKLOAD
from .echo_users import echo_user
from .http_answers import Answer, read_answer
from .processes import cpu, resident
from .shop_users import shop_user
from .steps import Pause, User, WrongAnswer

SILENT_SECONDS = 30.0
"""How long a server may send nothing at all."""
MAX_SECONDS = 60.0
"""How long a slow server may take for the least number of requests."""


class Job(msgspec.Struct):
    """What to send to which server, and for how long; the first requests do not count."""

    workload: str
    version: str
    port: int
    pid: int
    users: int
    warm_up: int
    """The requests before those that count."""
    seconds: float
    requests: int
    """The least number of requests that are measured."""


class Measured(msgspec.Struct):
    counted: int
    raw: int
    seconds: float
    cpu: float
    """The server's CPU seconds."""
    resident: float
    """The server's memory in MB."""
    busy: float
    """The share of the time in which the load generator worked."""
    latencies: dict[str, list[float]]
    """By tool or method: the median, the 95th and the 99th percentile in milliseconds."""


class _Connection:
    """One user, and what has arrived of the answer to the last request."""

    def __init__(self, port: int, user: User) -> None:
        self.user = user
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.name = ""
        self.counted = False
        self.sent_at = 0.0


class Load:
    """Runs all users until the time is over."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._spins = job.workload == ECHO_WORKLOAD.name
        """Never sleep: waking this process up would be work for the server.

        The shop's tools wait for other processes on this core, so there it sleeps.
        """
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._pauses: list[tuple[float, int]] = []
        self._clear()

    def _clear(self) -> None:
        self._counted = self._raw = 0
        self._busy = 0.0
        self._times: dict[str, list[float]] = defaultdict(list)

    def run(self) -> Measured:
        job = self._job
        for number in range(1, job.users + 1):
            connection = _Connection(job.port, _user(job, number))
            self._connections[connection.socket.fileno()] = connection
            self._poll.register(connection.socket.fileno(), select.EPOLLIN)
            self._advance(connection, None)
        self._run_for(0, job.warm_up)
        self._clear()
        before, start = cpu(job.pid), time.perf_counter()
        self._run_for(job.seconds, job.requests)
        seconds, spent = time.perf_counter() - start, cpu(job.pid) - before
        memory = resident(job.pid)
        for connection in self._connections.values():
            connection.socket.close()
        latencies = {name: _percentiles(times) for name, times in sorted(self._times.items())}
        return Measured(
            self._counted, self._raw, seconds, spent, memory, self._busy / seconds, latencies
        )

    def _run_for(self, seconds: float, requests: int) -> None:
        """Run all users for that many seconds, and until that many requests are answered."""
        heard = now = time.perf_counter()
        end, last = now + seconds, now + MAX_SECONDS
        while now < end or (now < last and self._raw < requests):
            ready = self._poll.poll(self._timeout(now, max(end, now + 0.1)))
            now = time.perf_counter()
            if ready:
                heard = now
            elif now - heard > SILENT_SECONDS:
                raise WrongAnswer(f"no answer in {SILENT_SECONDS:.0f} seconds")
            for fd, _ in ready:
                self._receive(self._connections[fd])
            while self._pauses and self._pauses[0][0] <= now:
                _, fd = heapq.heappop(self._pauses)
                self._advance(self._connections[fd], None)
            worked, now = now, time.perf_counter()
            self._busy += now - worked

    def _timeout(self, now: float, end: float) -> float:
        if self._spins:
            return 0
        until = min(end, self._pauses[0][0]) if self._pauses else end
        # Rounded up, else the loop turns until the next millisecond.
        return max(0.0, until - now) + 0.0005

    def _receive(self, connection: _Connection) -> None:
        chunk = connection.socket.recv(65536)
        if not chunk:
            raise WrongAnswer(f"{connection.name}: the server closed the connection")
        received = connection.received + chunk if connection.received else chunk
        answer = read_answer(received)
        if answer is None:
            connection.received = received
            return
        connection.received = b""
        self._raw += 1
        if connection.counted:
            self._counted += 1
            self._times[connection.name].append(time.perf_counter() - connection.sent_at)
        self._advance(connection, answer)

    def _advance(self, connection: _Connection, answer: Answer | None) -> None:
        """Let the user check the answer, and do what it wants next."""
        step = next(connection.user) if answer is None else connection.user.send(answer)
        if isinstance(step, Pause):
            due = time.perf_counter() + step.seconds
            heapq.heappush(self._pauses, (due, connection.socket.fileno()))
            return
        connection.name, connection.counted = step.name, step.counted
        connection.sent_at = time.perf_counter()
        connection.socket.sendall(step.request)


def _user(job: Job, number: int) -> User:
    if job.workload == ECHO_WORKLOAD.name:
        return echo_user(job.port, number, job.version)
    return shop_user(job.port, number)


def _percentiles(times: list[float]) -> list[float]:
    ordered = sorted(times)
    return [1e3 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95, 0.99)]


def main() -> int:
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    try:
        measured = Load(job).run()
    except WrongAnswer as exc:
        print(exc, file=sys.stderr)
        return 1
    print(msgspec.json.encode(measured).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
