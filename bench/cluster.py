"""Tasks in PostgreSQL: pick-up, reads, lost workers, claims, growth, idle processes; limits.

The database waits for the disk, and runs on the same machine.
"""

from __future__ import annotations

import http.client
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import psycopg
from tests.state.postgres import Postgres

from answerback import success
from answerback.core.limits import TaskLimits
from answerback.state.database import migrate
from answerback.state.shared import SharedState, connected
from answerback.tasks.postgres_store import PostgresStore
from answerback.tasks.task_record import TaskRecord, new_id
from answerback.tasks.task_runner import LEASE
from answerback.tasks.transitions import claimed, finished

from .load import calls_per_second, request
from .report import Figure
from .tasks import HERE, Client, _cpu_seconds, _served

SECRET = "a secret of the benchmark"
LIMITS = TaskLimits(queue=20_000)
ROUNDS, BURST = 10, 20
FINISHED = UNSERVED = 100_000
IDLE_SECONDS = 20.0
CALL_STARTS, CALL_SECONDS, CONNECTIONS = 5, 0.5, 16
LIMITED_SECONDS = 5.0
JSON = {"Content-Type": "application/json"}
MADE, LIVE, BATCH, PER_SECOND = 200_000, 20_000, 2_000, 2_000
NAP = 10
"""The seconds between looks of autovacuum: less than the default of 60, as the tasks of ten minutes
are made in less than two."""
COPIED = "app, tool, owner, state, worker, lease, fence, record, arguments, answers, result"


def measure() -> list[Figure]:
    server = Postgres(durable=True, settings=(f"autovacuum_naptime={NAP}s",))
    try:
        with ExitStack() as stack:
            return [
                *_waiting_and_growth(server, stack),
                *_claims_beside_a_queue(server, stack),
                *_idle(server, stack),
                _calls_without_it(server, stack),
                *_limited_calls(server, stack),
                _bloat(server, stack),
            ]
    finally:
        server.close()


class Place:
    """A database with tables, a store of this process, a server, and a worker."""

    def __init__(self, server: Postgres, stack: ExitStack) -> None:
        self.url = server.new_database()
        with connected(self.url) as connection:
            migrate(connection)
            connection.execute("CREATE TABLE probe (n integer)")
        shared = SharedState(self.url, [SECRET.encode()])
        stack.callback(shared.close)
        self.store = PostgresStore(shared, "bench")
        self.database = shared.database

    def serve(self, stack: ExitStack) -> None:
        self.port, self.pid = stack.enter_context(_started(self.url, "serve", "--no-tasks"))
        _, self.worker = stack.enter_context(_started(self.url, "worker"))

    def ended_task(self) -> TaskRecord:
        """Add a task that has ended."""
        task = _task(worker="w", fence=1, lease=time.time() + 60)
        self.store.add(task, LIMITS)
        end = partial(finished, worker="w", fence=1, reply=success("done"))
        changed = self.store.change(task.id, end)
        assert changed is not None
        return changed

    def prepare(self) -> None:
        """Add what the timed calls need, and let the database settle."""
        self.known = self.ended_task().id
        self.store.add(_owned("x"), LIMITS)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def call_times(self) -> dict[str, list[float]]:
        return {
            "creation": _times(lambda: self.store.add(_owned("w"), LIMITS)),
            "get": _times(lambda: self.store.get(self.known)),
            "renewal": _times(lambda: self.store.renew(["x"], 3600)),
        }

    def claim_times(self) -> dict[str, list[float]]:
        look = partial(self.store.claim, "w", 60.0, 1)

        def claim() -> None:
            assert look(["stamp"])

        for _ in range(BURST):
            self.store.add(_task(), LIMITS)
        return {"a claim": _times(claim), "a look for tasks": _times(lambda: look(["another"]))}

    def pick_up_times(self) -> dict[str, list[float]]:
        commit = partial(self.database.rows, "INSERT INTO probe VALUES (1)")
        return {"commit": _times(commit), "pick-up": self.pick_ups()}

    def pick_ups(self) -> list[float]:
        """The milliseconds from sending a request to the start of its function in the worker."""
        client = Client(self.port)
        found = []
        for n in range(BURST):
            sent = time.time()
            id = client.call("stamp", n=n)["taskId"]
            # Reading the task meanwhile would slow its start.
            time.sleep(0.03)
            started = client.finished(id)["result"]["structuredContent"]["result"]
            found.append((started - sent) * 1e3)
        return found

    def copy(self, id: str, count: int, *, expires: str = "NULL") -> None:
        """Add copies of a task."""
        self.database.rows(
            f"INSERT INTO answerback.tasks (id, expires, {COPIED})"
            f" SELECT id || '-' || gen_random_uuid(), {expires}, {COPIED}"
            f" FROM answerback.tasks, generate_series(1, {count}) WHERE id = %s",
            id,
        )


def _task(**members: Any) -> TaskRecord:
    now = time.time()
    given = {"id": new_id(), "tool": "stamp", "arguments": b'{"n": 1}', "idempotent": True}
    return TaskRecord(**{**given, "created": now, "changed": now, **members})


def _waiting_and_growth(server: Postgres, stack: ExitStack) -> Iterator[Figure]:
    places = empty, full = [Place(server, stack) for _ in range(2)]
    task = full.ended_task()
    for _ in range(FINISHED // BATCH):
        full.copy(task.id, BATCH, expires="answerback.now() + 3600")
    for place in places:
        place.prepare()
    medians = _medians(places, Place.call_times)
    with ExitStack() as processes:
        for place in places:
            place.serve(processes)
        for kept, found in zip(medians, _medians(places, Place.pick_up_times), strict=True):
            kept.update(found)
        yield from _pick_up(medians[0])
        yield _lost_worker(empty)
    for what in ("creation", "pick-up", "get"):
        yield _growth(what, medians[0][what], medians[1][what])


def _claims_beside_a_queue(server: Postgres, stack: ExitStack) -> Iterator[Figure]:
    """The cost of a claim while many tasks of another tool wait and no worker runs them."""
    places = _, full = [Place(server, stack) for _ in range(2)]
    task = _task(tool="unserved")
    full.store.add(task, LIMITS)
    for _ in range(UNSERVED // BATCH):
        full.copy(task.id, BATCH)
    for place in places:
        place.prepare()
    without, with_them = _medians(places, Place.claim_times)
    for what, cost in without.items():
        detail = f"{cost:.2f} ms without, {with_them[what]:.2f} ms with {UNSERVED:,} of them"
        name = f"{what} beside waiting tasks of another tool"
        yield Figure(name, with_them[what] / cost, 2, True, detail)


def _medians(
    places: list[Place], measured: Callable[[Place], dict[str, list[float]]]
) -> list[dict[str, float]]:
    """The p50 in milliseconds of what is measured in each place."""
    costs: list[dict[str, list[float]]] = [{} for _ in places]
    # In turn, so that other load on the machine affects all of them alike.
    for _ in range(ROUNDS):
        for kept, place in zip(costs, places, strict=True):
            for what, found in measured(place).items():
                kept.setdefault(what, []).extend(found)
    return [{what: statistics.median(found) for what, found in kept.items()} for kept in costs]


def _times(call: Callable[[], object]) -> list[float]:
    """The milliseconds of each call in a burst."""
    found = []
    for _ in range(BURST):
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1e3)
    return found


def _owned(worker: str) -> TaskRecord:
    """Return a task that a worker has, so that nobody runs it."""
    return _task(worker=worker, fence=1, lease=time.time() + 3600, tool="none")


def _pick_up(medians: dict[str, float]) -> Iterator[Figure]:
    commit = medians["commit"]
    limit = round(2.5 * commit + 5, 2)
    detail = f"2.5 durable commits of {commit:.2f} ms, and 5 ms"
    yield Figure(
        "pick-up of a task by another process, p50 in ms", medians["pick-up"], limit, True, detail
    )
    yield Figure("reading a task in PostgreSQL, p50 in ms", medians["get"], 1, True, "")
    yield Figure("a write that is not durable, p50 in ms", medians["renewal"], 1, True, "")


def _lost_worker(place: Place) -> Figure:
    """The seconds until another host's worker is noticed that claimed a task and died."""
    taken = claimed(_task(), time.time(), worker="1/another-boot:1/dead", lease=LEASE)
    assert taken is not None
    began = time.monotonic()
    place.store.add(taken, LIMITS)
    while (task := place.store.get(taken.id)) is None or not task.is_final:
        time.sleep(0.1)
    seconds = time.monotonic() - began
    return Figure("a lost worker's task ends elsewhere, s", seconds, LEASE + 5, True, "lease 30 s")


def _growth(what: str, without: float, with_them: float) -> Figure:
    detail = f"{without:.2f} ms without, {with_them:.2f} ms with {FINISHED:,} finished tasks"
    return Figure(f"{what} beside many finished tasks", with_them / without, 1.2, True, detail)


def _idle(server: Postgres, stack: ExitStack) -> Iterator[Figure]:
    place = Place(server, stack)
    with ExitStack() as processes:
        place.serve(processes)
        yield _cpu("the database is there", place)
        server.stop()
        yield _cpu("the database is away", place)
        server.start()


def _cpu(when: str, place: Place) -> Figure:
    pids = [place.pid, place.worker]
    time.sleep(2)
    before = [_cpu_seconds(pid) for pid in pids]
    time.sleep(IDLE_SECONDS)
    used = max(_cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True))
    detail = f"of one core, over {IDLE_SECONDS:g} s, the busier of server and worker"
    return Figure(
        f"CPU of an idle process in %, {when}", 100 * used / IDLE_SECONDS, 1, True, detail
    )


def _calls_without_it(server: Postgres, stack: ExitStack) -> Figure:
    """The CPU time of a call that does not ask the database, as a multiple of that without one."""
    place = Place(server, stack)
    costs: list[tuple[float, float]] = []
    # Two processes of the same program differ by some percent, so both are started anew.
    for _ in range(CALL_STARTS):
        with _started(place.url, "serve") as shared, _served() as own:
            rounds = [(_call_cpu(*shared), _call_cpu(*own)) for _ in range(ROUNDS)]
            costs.append((min(each[0] for each in rounds), min(each[1] for each in rounds)))
    ratio = statistics.median(shared / own for shared, own in costs)
    pairs = ", ".join(f"{own * 1e6:.1f} and {shared * 1e6:.1f}" for shared, own in costs)
    detail = f"µs CPU without and with, of {CALL_STARTS} starts: {pairs}"
    return Figure("a call that needs no state, times without", ratio, 1.05, True, detail)


def _limited_calls(server: Postgres, stack: ExitStack) -> Iterator[Figure]:
    """Calls with a shared limit at two hosts, which count by the same row of the database."""
    place = Place(server, stack)
    with _started(place.url, "serve") as one, _started(place.url, "serve") as other:
        ends = time.perf_counter() + LIMITED_SECONDS

        def call(port: int) -> list[float]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            moments = [time.perf_counter()]
            while moments[-1] < ends:
                connection.request("POST", "/functions/limited", '{"n": 1}', JSON)
                response = connection.getresponse()
                assert response.status == 200, response.read()
                response.read()
                moments.append(time.perf_counter())
            return [after - before for before, after in pairwise(moments)]

        with ThreadPoolExecutor() as threads:
            found = list(threads.map(call, [one[0], other[0]] * 2))
    trip = statistics.median(_times(lambda: place.database.rows("SELECT 1")))
    times = [each for seconds in found for each in seconds]
    median, rate = 1000 * statistics.median(times), len(times) / LIMITED_SECONDS
    where = "two hosts, one key"
    detail = f"two connections for each host; SELECT 1 takes {trip:.2f} ms"
    yield Figure(f"a call with a shared limit, {where}, p50 in ms", median, 3, True, detail)
    yield Figure(f"calls with a shared limit a second, {where}", rate, 500, False, detail)


def _call_cpu(port: int, pid: int) -> float:
    """The server's CPU seconds for one call over REST."""
    before = _cpu_seconds(pid)
    message = request(port, "/functions/plain", b'{"n": 1}')
    rate = calls_per_second(port, message, CONNECTIONS, CALL_SECONDS)
    return (_cpu_seconds(pid) - before) / (rate * CALL_SECONDS)


def _bloat(server: Postgres, stack: ExitStack) -> Figure:
    """The table's size after many tasks were made and removed, in live sizes."""
    place = Place(server, stack)
    task = place.ended_task()
    for _ in range(LIVE // BATCH):
        place.copy(task.id, BATCH)
    made = 0
    began = time.monotonic()
    while made < MADE:
        place.copy(task.id, BATCH, expires="0")
        place.store.remove_expired()
        made += BATCH
        time.sleep(max(0.0, began + made / PER_SECOND - time.monotonic()))
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE copied (LIKE answerback.tasks INCLUDING ALL)")
        connection.execute(
            "INSERT INTO copied OVERRIDING SYSTEM VALUE SELECT * FROM answerback.tasks"
        )
        row = connection.execute(
            "SELECT pg_total_relation_size('answerback.tasks'), pg_total_relation_size('copied')"
        ).fetchone()
    assert row is not None
    detail = f"{MADE:,} tasks beside {LIVE:,}; {row[0] / 1e6:.0f} MB"
    return Figure(
        "table after tasks made and removed, in live sizes", row[0] / row[1], 3, True, detail
    )


@contextmanager
def _started(url: str, *command: str) -> Iterator[tuple[int, int]]:
    """Start a server or a worker; yield its port and its process id."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "tasks_app.py"), *command, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ANSWERBACK_STATE": url, "ANSWERBACK_SECRET": SECRET},
    )
    assert process.stderr is not None
    try:
        text = ""
        while "Ctrl-C" not in text:
            line = process.stderr.readline()
            assert line, text
            text += line
        port = int(text.partition("http://")[2].partition("/")[0].rpartition(":")[2])
        yield port, process.pid
    finally:
        process.terminate()
        process.communicate(timeout=60)
