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
from answerback.records.reader import StoredRecord, decode, read
from answerback.records.statistics import summarise
from answerback.tasks.memory_store import MemoryStore
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import TaskRecord
from answerback.tasks.task_store import TaskStore

from .report import Figure

TOOLS = 5_000
APPS, REGISTERED = 100, 1_000
TASKS = 100_000
OWNERS = 1_000
CALLS = 200_000
ROUNDS = 5
NOW = 1_000_000.0
SERVED = ("job",)
UNLIMITED = TaskLimits(queue=10**9, per_owner=10**9, total_bytes=10**12)


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        return [
            _unknown_tool(),
            _registering(),
            *_tasks_in_sqlite(Path(folder, "tasks.db")),
            *_tasks_in_memory(),
            _expiry(),
            _records(Path(folder, "records.db")),
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


def _tasks_in_memory() -> list[Figure]:
    store = MemoryStore()
    for number in range(TASKS):
        store.add(_task(number), UNLIMITED)
    return _store_figures("memory", store, lambda: _end_all(store))


def _tasks_in_sqlite(path: Path) -> list[Figure]:
    store = SQLiteStore(path, durable=False)
    store.version()  # This makes the table.
    encode = msgspec.msgpack.Encoder().encode
    tasks = map(_task, range(TASKS))
    rows = [(each.id, each.owner, each.state, encode(each)) for each in tasks]
    _execute(
        path,
        "INSERT INTO tasks (id, owner, state, worker, lease, fence, record)"
        " VALUES (?, ?, ?, '', 0, 0, ?)",
        rows,
    )
    return _store_figures(
        "SQLite", store, lambda: _execute(path, "UPDATE tasks SET state = 'completed'", [()])
    )


def _execute(path: Path, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(statement, rows)


def _end_all(store: TaskStore) -> None:
    while taken := store.claim("w", 60.0, 1_000, SERVED):
        for task in taken:
            store.change(task.id, _ended)


def _store_figures(name: str, store: TaskStore, end_all: Callable[[], None]) -> list[Figure]:
    """Of *TASKS* of many owners: first they all wait, then all have ended."""
    add = _least(lambda number: store.add(_task(TASKS + number), UNLIMITED))
    limits = TaskLimits(per_owner=10**9, total_bytes=10**12)
    refused = _least(lambda number: _refusal(store, _task(TASKS + ROUNDS + number), limits))
    end_all()
    store.add(_task(-1), UNLIMITED)
    store.claim("w", 60.0, 1, SERVED)
    renew = _least(lambda number: store.renew("w", number))
    first = _least(lambda number: store.page("owner 999", None, 100))
    last = store.page("owner 999", None, 99)[-1].id
    later = _least(lambda number: store.page("owner 999", last, 100))
    store.close()
    suffix = f"{TASKS:,} tasks in {name}, ms"
    return [
        _figure(f"a new task beside {suffix}", add, 1),
        _figure(f"a refused task beside {suffix}", refused, 1),
        _figure(f"renewing a claim beside {suffix}", renew, 1),
        _figure(f"first page of an owner of {suffix}", first, 3),
        _figure(f"second page of an owner of {suffix}", later, 3),
    ]


def _refusal(store: TaskStore, task: TaskRecord, limits: TaskLimits) -> None:
    try:
        store.add(task, limits)
    except Unavailable:
        return
    raise AssertionError("nothing was refused")


def _expiry() -> Figure:
    store = MemoryStore()
    for number in range(TASKS):
        store.add(_task(number, expires=NOW - 1), UNLIMITED)
    for number in range(TASKS):
        store.change(f"task-{number}", _ended)
    steps: list[float] = []
    removed = 0
    while removed < TASKS:
        started = time.process_time()
        removed += store.remove_expired()
        steps.append(time.process_time() - started)
    detail = f"{len(steps)} steps of together {sum(steps) * 1e3:.0f} ms"
    what = f"longest step of removing {TASKS:,} expired tasks, ms"
    return Figure(what, max(steps) * 1e3, 20, True, detail)


def _records(path: Path) -> Figure:
    """Calls in a tight loop of this process, which leave the writer no idle moment."""
    app = App("bench", records=Records(SQLite(path)))
    app.add_tool(_nothing, name="nothing", inline=True)

    async def calls() -> float:
        started = time.perf_counter()
        for _ in range(CALLS):
            await app.call("nothing")
        return time.perf_counter() - started

    seconds = asyncio.run(calls())
    assert app.records is not None
    app.records.close()
    kept = (decode(each) for each in read(str(path)) if isinstance(each, StoredRecord))
    summary = summarise(event for event in kept if event is not None)
    detail = f"{summary.lost} of {CALLS:,}, {summary.unchecked} not checked"
    detail += f"; {seconds / CALLS * 1e6:.0f} µs a call"
    return Figure("records lost in a tight loop, %", 100 * summary.lost / CALLS, 0, True, detail)


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
