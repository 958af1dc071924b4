"""The stores of tasks beside many records: no step looks at all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.steps import steps_of
from tests.tasks.store_clock import NOW, StoreClock

from answerback.core.limits import TaskLimits
from answerback.errors import Unavailable
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import TaskRecord
from answerback.tasks.task_store import MemoryStore, TaskStore

LIMITS = TaskLimits(queue=10**9, per_owner=10**9)
TOOLS = ("job",)


def _task(number: int, **members: Any) -> TaskRecord:
    given = {"id": f"task-{number}", "tool": "job", "arguments": b"{}", "owner": "ann"}
    return TaskRecord(**{**given, "created": NOW, "changed": NOW, **members})


def _ended(task: TaskRecord, now: float = NOW) -> TaskRecord:
    return msgspec.structs.replace(task, state="completed", worker="", result=b"")


class _Watched:
    """Watches the connections of SQLite: their statements, and the work of the engine."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.work = 0

    def watch(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.set_trace_callback(self.statements.append)
        connection.set_progress_handler(self._count, 100)
        return connection

    def _count(self) -> int:
        self.work += 1
        return 0


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Watched]:
    made, connect = _Watched(), sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **options: made.watch(connect(*a, **options)))
        yield made


STEPS: dict[str, Callable[[TaskStore], object]] = {
    "add": lambda store: store.add(_task(9), LIMITS),
    "get": lambda store: store.get("task-1"),
    "change": lambda store: store.change("task-1", _ended),
    "claim": lambda store: store.claim("w", 10, 5, TOOLS),
    "renew": lambda store: store.renew(["w"], 20),
    "claims": lambda store: store.claims(),
    "first page": lambda store: store.page("ann", None, 5),
    "next page": lambda store: store.page("ann", "task-1", 5),
    "last page": lambda store: store.page("ann", None, 5, newest_first=True),
    "last page but one": lambda store: store.page("ann", "task-3", 5, newest_first=True),
    "expiry": lambda store: store.remove_expired(),
}


@pytest.mark.parametrize("step", STEPS)
def test_each_statement_of_the_file_uses_an_index(
    step: str, tmp_path: Path, watched: _Watched
) -> None:
    path = tmp_path / "tasks.db"
    clock = StoreClock()
    store = SQLiteStore(path, durable=False, clock=clock)
    for number in range(4):
        store.add(_task(number, expires=NOW + 1), LIMITS)
    clock.set(NOW + 2)
    watched.statements.clear()

    STEPS[step](store)

    queries = [each for each in watched.statements if " tasks" in each]
    assert queries
    assert _scans(path, queries) == []


def _scans(path: Path, queries: list[str]) -> list[tuple[str, str]]:
    """The parts of plans that read the whole table, or sort what they read."""
    with closing(sqlite3.connect(path)) as connection:
        plans = {query: connection.execute(f"EXPLAIN QUERY PLAN {query}") for query in queries}
        return [
            (query, row[3])
            for query, rows in plans.items()
            for row in rows
            if ("SCAN tasks" in row[3] and "INDEX" not in row[3]) or "TEMP B-TREE" in row[3]
        ]


def test_a_file_of_an_earlier_version_gets_the_new_column_and_indexes(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    earlier = SQLiteStore(path, durable=False)
    earlier.add(_task(1), LIMITS)
    earlier.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP INDEX owners; DROP INDEX queues; ALTER TABLE tasks DROP COLUMN tool"
        )

    store = SQLiteStore(path, durable=False)
    found = store.page("ann", None, 5)
    store.add(_task(2), TaskLimits(queue=1))

    assert [task.id for task in found] == ["task-1"]
    with pytest.raises(Unavailable):
        store.add(_task(3), TaskLimits(queue=1))
    assert _scans(path, ["SELECT record FROM tasks WHERE owner = 'a' ORDER BY number"]) == []


def test_a_full_queue_is_noticed_without_counting_all_that_waits(
    tmp_path: Path, watched: _Watched
) -> None:
    store = SQLiteStore(tmp_path / "tasks.db", durable=False)

    def work_of_a_refusal(waiting: int) -> int:
        for number in range(waiting):
            store.add(_task(number, id=f"{waiting}-{number}"), LIMITS)
        watched.work = 0
        with pytest.raises(Unavailable):
            store.add(_task(-1), TaskLimits(queue=5))
        return watched.work

    few, many = work_of_a_refusal(10), work_of_a_refusal(1_000)

    assert many <= few + 5


def test_a_new_task_is_kept_without_counting_all_that_waits(
    tmp_path: Path, watched: _Watched
) -> None:
    def work_of_a_new_task(waiting: int) -> int:
        store = SQLiteStore(tmp_path / f"{waiting}.db", durable=False)
        for number in range(waiting):
            store.add(_task(number, owner=f"owner {number}"), LIMITS)
        watched.work = 0
        store.add(_task(-1, owner="ann"), LIMITS)
        return watched.work

    few, many = work_of_a_new_task(10), work_of_a_new_task(1_000)

    assert many <= few + 5


def test_a_queue_with_gaps_is_full_only_when_enough_tasks_wait(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "tasks.db", durable=False)
    limits = TaskLimits(queue=3)
    for number in range(6):
        store.add(_task(number), LIMITS)
    for number in range(1, 5):
        store.change(f"task-{number}", _ended)

    store.add(_task(6), limits)

    with pytest.raises(Unavailable):
        store.add(_task(7), limits)


def test_a_page_in_memory_looks_at_the_tasks_of_its_owner_alone() -> None:
    def steps_beside(others: int) -> int:
        store = MemoryStore()
        for number in range(others):
            store.add(_task(number, owner=f"other {number}"), LIMITS)
        ids = [store.add(_task(-number), LIMITS).id for number in (1, 2, 3)]
        pages: list[TaskRecord] = []

        def read() -> None:
            pages.extend(store.page("ann", None, 2))
            pages.extend(store.page("ann", pages[-1].id, 2))

        steps = steps_of(read)
        assert [task.id for task in pages] == ids
        return steps

    assert steps_beside(2_000) == steps_beside(10)


def test_expired_tasks_in_memory_are_removed_a_thousand_at_a_time() -> None:
    clock = StoreClock()
    store = MemoryStore(clock)
    for number in range(2_500):
        store.add(_task(number, expires=NOW + 1), LIMITS)
        store.change(f"task-{number}", _ended)
    kept = store.add(_task(-1, expires=NOW + 100), LIMITS)

    clock.set(NOW + 2)
    removed = [store.remove_expired() for _ in range(4)]

    assert removed == [1_000, 1_000, 500, 0]
    assert store.page(None, None, 10) == [kept]


def test_a_task_in_memory_that_outlives_its_expiry_is_removed_after_its_end() -> None:
    clock = StoreClock()
    store = MemoryStore(clock)
    store.add(_task(1, expires=NOW + 1), LIMITS)

    def removed_at(seconds: float) -> int:
        clock.set(NOW + seconds)
        return store.remove_expired()

    while_it_waits = [removed_at(seconds) for seconds in (2, 3, 4)]
    store.change("task-1", _ended)
    after = [removed_at(seconds) for seconds in (6, 7)]

    assert while_it_waits == [0, 0, 0]
    assert after == [1, 0]


def test_a_task_in_memory_that_expires_earlier_than_before_is_removed_first() -> None:
    store = MemoryStore(StoreClock())
    for number in range(1_500):
        store.add(_task(number, expires=NOW + 1), LIMITS)
    store.change("task-1400", lambda task, _: msgspec.structs.replace(_ended(task), expires=0.0))

    store.remove_expired()

    assert store.get("task-1400") is None
