"""What grows with the number of tools, apps, tasks and records, at a size far above the usual."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from answerback import App, Unavailable
from answerback.core.limits import TaskLimits
from answerback.records import Records, SQLite
from answerback.records.reader import StoredRecord, decode, read, summarise
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import TaskRecord
from answerback.tasks.task_store import MemoryStore, TaskStore

from .report import Chart, Figure, Found

TOOLS = 5_000
APPS, REGISTERED = 100, 1_000
TASKS = [1_000, 10_000, 100_000]
EXPIRED = 100_000
OWNERS = 1_000
CALLS, PER_STEP = 200_000, 40_000
ROUNDS = 5
NOW = 1_000_000.0
SERVED = ("job",)
# The operations measured beside many tasks, each with its limit in ms.
STEPS = {
    "a new task": 1.0,
    "a refused task": 1.0,
    "renewing a claim": 1.0,
    "an owner's first page": 3.0,
    "an owner's second page": 3.0,
}
UNLIMITED = TaskLimits(queue=10**9, per_owner=10**9, total_bytes=10**12)


def measure() -> Found:
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        stores: dict[str, Callable[[int], TaskStore]] = {
            "SQLite": lambda count: _sqlite_store(Path(folder, f"tasks-{count}.db"), count),
            "memory": _memory_store,
        }
        steps = {
            (name, count): _store_steps(make(count), count)
            for name, make in stores.items()
            for count in TASKS
        }
        return [
            *(_task_chart(steps, name) for name in stores),
            _unknown_tool(),
            _registering(),
            *(_step_figure(steps, name, step) for name in stores for step in STEPS),
            _expiry(),
            *_records(Path(folder, "records.db")),
        ]


def _unknown_tool() -> Figure:
    app = App("bench")
    for number in range(TOOLS):
        app.add_tool(_nothing, name=f"service_{number % 70}_operation_{number}")

    async def least() -> float:
        await app.call("service_7_operation_x")
        times = []
        for _ in range(ROUNDS):
            started = time.process_time()
            await app.call("service_7_operation_x")
            times.append(time.process_time() - started)
        return min(times)

    return _figure(f"call of an unknown tool, {TOOLS:,} tools, ms", asyncio.run(least()), 5)


def _registering() -> Figure:
    """*REGISTERED* tools in apps that one app includes already, and as many included afterwards."""
    before, after = _seconds_of_registering(False), _seconds_of_registering(True)
    detail = f"{after * 1e3:.0f} ms; included afterwards {before * 1e3:.0f} ms"
    what = f"registering {REGISTERED:,} tools in {APPS} included apps, times"
    return Figure(what, after / before, 2, True, detail)


def _seconds_of_registering(included: bool) -> float:
    app, apps = App("bench"), [App(f"app{number}") for number in range(APPS)]
    started = time.process_time()
    for number, each in enumerate(apps) if included else ():
        app.include(each, prefix=f"a{number}_")
    for number in range(REGISTERED):
        apps[number % APPS].add_tool(_nothing, name=f"tool_{number}")
    for number, each in enumerate(apps) if not included else ():
        app.include(each, prefix=f"a{number}_")
    assert len(app.tools) == REGISTERED
    return time.process_time() - started


def _memory_store(count: int) -> TaskStore:
    store = MemoryStore()
    for number in range(count):
        store.add(_task(number), UNLIMITED)
    return store


def _sqlite_store(path: Path, count: int) -> TaskStore:
    store = SQLiteStore(path, durable=False)
    store.version()  # This makes the table.
    encode = msgspec.msgpack.Encoder().encode
    tasks = map(_task, range(count))
    rows = [(each.id, each.owner, each.state, encode(each)) for each in tasks]
    _execute(
        path,
        "INSERT INTO tasks (id, owner, state, worker, lease, fence, record)"
        " VALUES (?, ?, ?, '', 0, 0, ?)",
        rows,
    )
    return store


def _execute(path: str | Path, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(statement, rows)


def _end_all(store: TaskStore) -> None:
    if isinstance(store, SQLiteStore):
        _execute(store.path, "UPDATE tasks SET state = 'completed'", [()])
        return
    while taken := store.claim("w", 60.0, 1_000, SERVED):
        for task in taken:
            store.change(task.id, _ended)


def _store_steps(store: TaskStore, count: int) -> dict[str, float]:
    """The seconds of each step beside *count* tasks: first they all wait, then all have ended."""
    add = _least(lambda number: store.add(_task(count + number), UNLIMITED))
    limits = TaskLimits(queue=min(count, 10_000), per_owner=10**9, total_bytes=10**12)
    refused = _least(lambda number: _refusal(store, _task(count + ROUNDS + number), limits))
    _end_all(store)
    store.add(_task(-1), UNLIMITED)
    store.claim("w", 60.0, 1, SERVED)
    renew = _least(lambda number: store.renew("w", number))
    first = _least(lambda number: store.page("owner 999", None, 100))
    last = store.page("owner 999", None, 99)[-1].id
    second = _least(lambda number: store.page("owner 999", last, 100))
    store.close()
    return dict(zip(STEPS, (add, refused, renew, first, second), strict=True))


def _task_chart(steps: dict[tuple[str, int], dict[str, float]], name: str) -> Chart:
    return Chart(
        name=f"tasks-{name.lower()}",
        title=f"Steps beside many tasks in {'an SQLite file' if name == 'SQLite' else name}",
        unit="ms",
        columns=[f"{count:,}" for count in TASKS],
        rows={step: [steps[name, count][step] * 1e3 for count in TASKS] for step in STEPS},
        across="tasks in the store",
    )


def _step_figure(steps: dict[tuple[str, int], dict[str, float]], name: str, step: str) -> Figure:
    what = f"{step} beside {TASKS[-1]:,} tasks in {name}, ms"
    return _figure(what, steps[name, TASKS[-1]][step], STEPS[step])


def _refusal(store: TaskStore, task: TaskRecord, limits: TaskLimits) -> None:
    try:
        store.add(task, limits)
    except Unavailable:
        return
    raise AssertionError("nothing was refused")


def _expiry() -> Figure:
    store = MemoryStore()
    for number in range(EXPIRED):
        store.add(_task(number, expires=NOW - 1), UNLIMITED)
    for number in range(EXPIRED):
        store.change(f"task-{number}", _ended)
    steps: list[float] = []
    removed = 0
    while removed < EXPIRED:
        started = time.process_time()
        removed += store.remove_expired()
        steps.append(time.process_time() - started)
    detail = f"{len(steps)} steps of together {sum(steps) * 1e3:.0f} ms"
    what = f"longest step of removing {EXPIRED:,} expired tasks, ms"
    return Figure(what, max(steps) * 1e3, 20, True, detail)


def _records(path: Path) -> list[Figure | Chart]:
    """Calls in a tight loop of this process, which leave the writer no idle moment."""
    app = App("bench", records=Records(SQLite(path)))
    app.add_tool(_nothing, name="nothing", inline=True)

    async def calls() -> list[float]:
        times = []
        for _ in range(CALLS // PER_STEP):
            started = time.perf_counter()
            for _ in range(PER_STEP):
                await app.call("nothing")
            times.append((time.perf_counter() - started) / PER_STEP)
        return times

    times = asyncio.run(calls())
    assert app.records is not None
    app.records.close()
    kept = (decode(each) for each in read(str(path)) if isinstance(each, StoredRecord))
    summary = summarise(event for event in kept if event is not None)
    detail = f"{summary.lost} of {CALLS:,}, {summary.unchecked} not checked"
    detail += f"; {sum(times) / len(times) * 1e6:.0f} µs a call"
    return [
        Chart(
            name="records-growth",
            title="A call in process with a record in SQLite, by records in the file",
            unit="µs",
            columns=[f"{PER_STEP * (number + 1):,}" for number in range(len(times))],
            rows={"Answerback": [seconds * 1e6 for seconds in times]},
            across="records in the file",
        ),
        Figure("records lost in a tight loop, %", 100 * summary.lost / CALLS, 0, True, detail),
    ]


def _task(number: int, expires: float | None = None) -> TaskRecord:
    return TaskRecord(
        id=f"task-{number}",
        tool="job",
        arguments=b"{}",
        owner=f"owner {number % OWNERS}",
        created=NOW,
        changed=NOW,
        expires=expires,
    )


def _ended(task: TaskRecord, now: float) -> TaskRecord:
    return msgspec.structs.replace(task, state="completed", worker="", result=b"")


def _least(step: Callable[[int], object]) -> float:
    times = []
    for number in range(ROUNDS):
        started = time.perf_counter()
        step(number)
        times.append(time.perf_counter() - started)
    return min(times)


def _figure(what: str, seconds: float, limit: float) -> Figure:
    return Figure(what, seconds * 1e3, limit, True, f"least of {ROUNDS}")


def _nothing() -> None:
    pass
