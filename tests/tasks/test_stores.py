"""The stores of tasks: each change is one atomic step, and a lost worker's write is discarded."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.state.stores import postgres_store
from tests.tasks.store_clock import NOW, StoreClock

from answerback import Image, Link, success
from answerback.core.limits import TaskLimits
from answerback.errors import Conflict, RateLimited, ToolError, Unavailable
from answerback.tasks import postgres_store as postgres_module
from answerback.tasks import transitions
from answerback.tasks.sqlite_store import SQLiteStore, UnknownTaskFile
from answerback.tasks.task_record import FORMAT, OpenQuestion, TaskRecord, fingerprint_of, new_id
from answerback.tasks.task_store import MemoryStore, TaskStore

TOOLS = ("report",)
QUESTION = OpenQuestion("elicitation/create", {"message": "Sure?"})


def _task(**members: object) -> TaskRecord:
    given = {"id": new_id(), "tool": "report", "arguments": b"{}", "created": NOW, "changed": NOW}
    return TaskRecord(**{**given, **members})  # type: ignore[arg-type]  # the members are checked there


@pytest.fixture
def clock() -> StoreClock:
    return StoreClock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StoreClock) -> Iterator[TaskStore]:
    made: TaskStore
    match request.param:
        case "memory":
            made = MemoryStore(clock)
        case "sqlite":
            made = SQLiteStore(tmp_path / "tasks.db", durable=False, clock=clock)
        case _:
            url = request.getfixturevalue("state_url")
            clock.url = url
            made = postgres_store(url, "jobs")
            clock.set(NOW)
    yield made
    made.close()


def _claim(store: TaskStore, worker: str = "w1") -> TaskRecord:
    [task] = store.claim(worker, 10, 1, TOOLS)
    return task


def test_a_task_is_found_by_its_id_as_it_was_added(store: TaskStore) -> None:
    task = store.add(_task(owner="ann", answers={"a": {"x": [1, None]}}), TaskLimits())

    assert store.get(task.id) == task
    assert store.get("other") is None


def test_the_reply_of_a_finished_task_has_all_its_parts(store: TaskStore) -> None:
    store.add(_task(), TaskLimits())
    task = _claim(store)
    reply = success(
        "done",
        {"rows": 3},
        content=[Image(b"\x89", "image/png", meta={"a/b": 1}), Link("file:///a", "a")],
        meta={"shop/page": 2},
    )

    store.change(task.id, partial(transitions.finished, worker="w1", fence=task.fence, reply=reply))

    found = store.get(task.id)
    assert found is not None
    assert found.state == "completed"
    assert found.reply() == reply


def test_a_worker_that_lost_its_claim_cannot_write_a_result(store: TaskStore) -> None:
    store.add(_task(idempotent=True), TaskLimits())
    first = _claim(store, "w1")
    store.change(first.id, partial(transitions.given_up, worker="w1", fence=first.fence))
    second = _claim(store, "w2")

    def finish(task: TaskRecord, worker: str, text: str) -> TaskRecord | None:
        return store.change(
            task.id,
            partial(
                transitions.finished,
                worker=worker,
                fence=task.fence,
                reply=success(text),
            ),
        )

    assert finish(first, "w1", "late") is None
    assert finish(second, "w2", "right") is not None
    assert store.get(first.id).reply().content[0].text == "right"  # type: ignore[union-attr]  # see above


def test_a_task_that_is_not_idempotent_fails_when_its_worker_is_lost(store: TaskStore) -> None:
    store.add(_task(), TaskLimits())
    task = _claim(store)

    lost = store.change(task.id, partial(transitions.given_up, worker="w1", fence=task.fence))

    assert lost is not None
    assert lost.state == "failed"
    assert "may have taken effect" in lost.message
    assert store.claim("w2", 10, 1, TOOLS) == []


def test_a_worker_that_lost_its_claim_cannot_refuse_the_task(store: TaskStore) -> None:
    store.add(_task(idempotent=True), TaskLimits())
    first = _claim(store, "w1")
    store.change(first.id, partial(transitions.given_up, worker="w1", fence=first.fence))
    second = _claim(store, "w2")

    def refuse(worker: str, fence: int) -> TaskRecord | None:
        error = ToolError("no such tool")
        change = partial(transitions.refused, worker=worker, fence=fence, error=error)
        return store.change(first.id, change)

    assert refuse("w1", first.fence) is None
    assert refuse("w2", second.fence) is not None


def test_an_idempotent_task_that_ends_its_workers_fails_after_the_fifth(store: TaskStore) -> None:
    store.add(_task(idempotent=True), TaskLimits())
    states = []
    for worker in ("w1", "w2", "w3", "w4", "w5"):
        task = _claim(store, worker)
        lose = partial(transitions.given_up, worker=worker, fence=task.fence)
        states.append(store.change(task.id, lose).state)  # type: ignore[union-attr]  # it holds

    assert states == ["working", "working", "working", "working", "failed"]
    assert store.claim("w6", 10, 1, TOOLS) == []


def test_shutdowns_of_workers_do_not_end_an_idempotent_task(store: TaskStore) -> None:
    store.add(_task(idempotent=True), TaskLimits())
    for worker in ("w1", "w2", "w3", "w4", "w5"):
        task = _claim(store, worker)
        leave = partial(transitions.given_up, worker=worker, fence=task.fence, is_shutdown=True)
        store.change(task.id, leave)

    assert _claim(store, "w6").attempts == 6


def test_a_record_of_a_later_format_does_not_stop_the_other_tasks(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "tasks.db")
    later = store.add(_task(format=FORMAT + 1), TaskLimits())
    known = store.add(_task(), TaskLimits())

    assert [task.id for task in store.page(None, None, 10)] == [known.id]
    assert [task.id for task in store.claim("w1", 10, 1, TOOLS)] == [known.id]
    assert store.get(later.id) is None
    assert store.change(later.id, transitions.cancelled) is None


def test_a_final_state_never_changes(store: TaskStore) -> None:
    store.add(_task(), TaskLimits())
    task = _claim(store)
    store.change(task.id, transitions.cancelled)

    late = partial(transitions.finished, worker="w1", fence=task.fence, reply=success("x"))

    assert store.change(task.id, late) is None
    assert store.change(task.id, transitions.cancelled) is None
    assert store.get(task.id).state == "cancelled"  # type: ignore[union-attr]  # it is there


def test_a_task_resumes_when_its_last_question_is_answered(store: TaskStore) -> None:
    store.add(_task(), TaskLimits())
    task = _claim(store)
    questions = {"a": QUESTION, "b": QUESTION}
    store.change(
        task.id,
        partial(transitions.asked, worker="w1", fence=task.fence, questions=questions),
    )

    def answer(**answers: object) -> TaskRecord | None:
        return store.change(task.id, partial(transitions.answered, answers=answers))

    assert answer(unknown=1) is None
    one = answer(a={"action": "accept"})
    assert one is not None
    assert (one.state, list(one.questions)) == ("input_required", ["b"])
    both = answer(b={"action": "decline"})
    assert both is not None
    assert both.is_waiting
    assert _claim(store, "w2").answers == {"a": {"action": "accept"}, "b": {"action": "decline"}}


def test_each_task_is_claimed_once_however_many_workers_ask(store: TaskStore) -> None:
    for _ in range(60):
        store.add(_task(), TaskLimits())
    claimed: list[str] = []

    def work(worker: str) -> None:
        while tasks := store.claim(worker, 10, 3, TOOLS):
            claimed.extend(task.id for task in tasks)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(claimed) == len(set(claimed)) == 60


def test_the_same_idempotency_key_gives_the_same_task(store: TaskStore) -> None:
    mark = fingerprint_of("report", b"{}")
    first = store.add(_task(idempotency_key="k", fingerprint=mark), TaskLimits())
    again = store.add(_task(idempotency_key="k", fingerprint=mark), TaskLimits())
    other = store.add(_task(idempotency_key="k", fingerprint=mark, owner="bob"), TaskLimits())

    assert again.id == first.id != other.id
    with pytest.raises(Conflict):
        store.add(_task(idempotency_key="k", fingerprint=b"other"), TaskLimits())


def test_tasks_above_a_limit_are_refused(store: TaskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # PostgreSQL is asked for the length of the queue once a second.
    monkeypatch.setattr(postgres_module, "_REFRESH", 0.0)
    limits = TaskLimits(queue=2, per_owner=1)
    store.add(_task(owner="ann"), limits)

    with pytest.raises(RateLimited):
        store.add(_task(owner="ann"), limits)
    store.add(_task(owner="bob"), limits)
    with pytest.raises(Unavailable):
        store.add(_task(owner="cid"), limits)
    task = _claim(store)
    store.change(task.id, transitions.cancelled)
    assert store.add(_task(owner="ann"), limits).owner == "ann"


def test_pages_go_from_the_newest_task_to_the_oldest_if_asked(store: TaskStore) -> None:
    tasks = [store.add(_task(owner=owner), TaskLimits()) for owner in ("ann", "bob", "ann")]

    latest = store.page(None, None, 2, newest_first=True)
    earlier = store.page(None, latest[-1].id, 2, newest_first=True)
    of_owner = store.page("ann", None, 5, newest_first=True)

    assert latest + earlier == tasks[::-1]
    assert of_owner == [tasks[2], tasks[0]]
    assert store.page(None, tasks[0].id, 2, newest_first=True) == []


def test_a_full_queue_of_one_tool_leaves_room_for_the_tasks_of_another(
    store: TaskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "_REFRESH", 0.0)
    limits = TaskLimits(queue=2)
    for _ in range(2):
        store.add(_task(tool="unserved"), limits)

    with pytest.raises(Unavailable):
        store.add(_task(tool="unserved"), limits)
    served = store.add(_task(), limits)
    store.change(served.id, transitions.cancelled)
    for _ in range(2):
        store.add(_task(), limits)
    with pytest.raises(Unavailable):
        store.add(_task(), limits)


def test_expired_tasks_are_removed_unless_they_run_or_wait_for_a_worker(
    store: TaskStore, clock: StoreClock
) -> None:
    asking = store.add(_task(expires=NOW + 1, idempotency_key="k"), TaskLimits())
    claim = _claim(store)
    ask = partial(transitions.asked, worker="w1", fence=claim.fence, questions={"a": QUESTION})
    store.change(asking.id, ask)
    running = store.add(_task(expires=NOW + 1), TaskLimits())
    _claim(store)
    waiting = store.add(_task(expires=NOW + 1), TaskLimits())
    kept = store.add(_task(expires=None), TaskLimits())

    assert store.remove_expired() == 0
    clock.set(NOW + 2)
    assert store.remove_expired() == 1
    assert store.get(asking.id) is None
    assert [task.id for task in store.page(None, None, 10)] == [running.id, waiting.id, kept.id]
    assert store.add(_task(idempotency_key="k"), TaskLimits()).id != asking.id


def test_pages_go_on_after_the_last_task_of_the_page_before(store: TaskStore) -> None:
    ids = [store.add(_task(owner=who), TaskLimits()).id for who in ("a", "b", "a", "a")]

    first = store.page("a", None, 2)
    second = store.page("a", first[-1].id, 2)

    assert [task.id for task in first + second] == [ids[0], ids[2], ids[3]]


def _prepared(path: Path, prepare: Callable[[sqlite3.Connection], object]) -> None:
    connection = sqlite3.connect(path)
    prepare(connection)
    connection.commit()
    connection.close()


def test_the_file_is_private_and_another_process_sees_its_changes(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store, other = SQLiteStore(path), SQLiteStore(path)
    before = other.version()
    task = store.add(_task(), TaskLimits())

    assert os.stat(path).st_mode & 0o777 == 0o600
    assert other.version() != before
    assert other.get(task.id) == task


def test_a_file_of_another_program_or_a_later_version_is_refused(tmp_path: Path) -> None:
    foreign, later = tmp_path / "foreign.db", tmp_path / "later.db"
    _prepared(foreign, lambda connection: connection.execute("CREATE TABLE notes (x)"))
    _prepared(later, lambda connection: connection.execute("PRAGMA user_version = 99"))

    with pytest.raises(UnknownTaskFile, match="another program"):
        SQLiteStore(foreign).get("x")
    with pytest.raises(UnknownTaskFile, match="later version"):
        SQLiteStore(later).get("x")


def test_a_file_of_another_program_with_a_table_of_tasks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "todo.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE tasks (title TEXT)")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(UnknownTaskFile, match="another program"):
        SQLiteStore(path).version()
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_created_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        SQLiteStore(tmp_path / ("x" * 300)).version()


def test_a_locked_file_is_unavailable_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = SQLiteStore(path, busy=0.05)
    task = store.add(_task(), TaskLimits())
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unavailable):
        store.add(_task(), TaskLimits())
    assert store.get(task.id) == task
    holder.execute("ROLLBACK")
    holder.close()

    store.add(_task(), TaskLimits())
    assert len(store.page(None, None, 10)) == 2


def test_a_full_disk_is_unavailable_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "tasks.db", durable=False)
    task = store.add(_task(), TaskLimits())
    with store._opened("reading") as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(Unavailable):
        store.add(_task(arguments=b"x" * 100_000), TaskLimits())
    assert store.get(task.id) == task
    connection.execute("PRAGMA max_page_count = 100000")

    store.add(_task(arguments=b"x" * 100_000), TaskLimits())
    assert len(store.page(None, None, 10)) == 2


_FILLED_BY_THE_LOG = """
import resource, sys
from msgspec.structs import replace
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import TaskRecord
from answerback.core.limits import TaskLimits

resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
store = SQLiteStore(sys.argv[1], durable=False)
store.add(TaskRecord(id="1", tool="add", arguments=b"", created=1, changed=1), TaskLimits())
for number in range(60):
    message = f"{number} " + "x" * 10_000
    changed = store.change("1", lambda task, now: replace(task, message=message))
print(changed.message[:3])
"""


def test_a_log_that_fills_the_disk_is_emptied(tmp_path: Path) -> None:
    """SQLite empties it at 4 MB; here a file has 400 KB, and the task needs 10."""
    program = [sys.executable, "-c", _FILLED_BY_THE_LOG, str(tmp_path / "tasks.db")]

    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)

    assert (ended.stdout, ended.stderr) == ("59 \n", "")


def test_a_store_lists_the_claims_that_hold(store: TaskStore) -> None:
    store.add(_task(), TaskLimits())
    task = _claim(store)

    assert store.claims() == [(task.id, "w1", task.fence, NOW + 10)]
    store.renew(["w1"], 20)
    store.renew(["w2"], 30)
    store.change(task.id, transitions.cancelled)
    assert store.claims() == []


def test_an_id_can_be_typed_at_the_command_line() -> None:
    """`answerback tasks cancel -x` would take the id for an option."""
    assert [id for id in (new_id() for _ in range(2000)) if id.startswith("-")] == []
