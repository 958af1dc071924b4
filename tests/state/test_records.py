"""Records in PostgreSQL that cannot be read, that nobody runs, or whose secret changes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any

import psycopg
import pytest
from tests.fuzz.stdio_client import wait_until
from tests.state.postgres import Postgres
from tests.state.stores import SECRET, Make, make_tables, postgres_store
from tests.tasks.store_clock import NOW, StoreClock

from answerback import success
from answerback.core.limits import TaskLimits
from answerback.errors import Unavailable
from answerback.state.database import VERSION
from answerback.state.mailbox import SessionRows
from answerback.state.maintenance import check_state, rekey, update_tables
from answerback.state.sealing import Sealer
from answerback.state.shared import SharedState, UsedRows, connected
from answerback.tasks import postgres_store as postgres_module
from answerback.tasks import transitions
from answerback.tasks.postgres_store import PostgresStore
from answerback.tasks.task_record import FORMAT, TaskRecord, fingerprint_of, new_id

NEW = b"the next secret of the tests, of some length"
TOOLS = ("report",)
LIMITS = TaskLimits()
DAY = 86_400


def _task(**members: object) -> TaskRecord:
    given = {"id": new_id(), "tool": "report", "arguments": b"{}", "created": NOW, "changed": NOW}
    return TaskRecord(**{**given, **members})  # type: ignore[arg-type]  # the members are checked there


@pytest.fixture
def make(state_url: str) -> Iterator[Make]:
    make_tables(state_url)
    states: list[SharedState] = []

    def made(*secrets: bytes) -> PostgresStore:
        states.append(SharedState(state_url, secrets or [SECRET]))
        return PostgresStore(states[-1], "jobs")

    yield made
    for state in states:
        state.close()


@pytest.fixture
def store(make: Make) -> PostgresStore:
    return make()


def test_tasks_of_another_secret_do_not_stop_those_behind_them(make: Make) -> None:
    other, own = make(NEW), make()
    for _ in range(3):
        other.add(_task(), LIMITS)
    known = own.add(_task(), LIMITS)

    claimed = own.claim("w1", 10, 2, TOOLS)

    assert [task.id for task in claimed] == [known.id]


def test_tasks_of_a_later_version_do_not_stop_those_behind_them(store: PostgresStore) -> None:
    for _ in range(3):
        store.add(_task(format=FORMAT + 1), LIMITS)
    known = store.add(_task(), LIMITS)

    claimed = store.claim("w1", 10, 2, TOOLS)

    assert [task.id for task in claimed] == [known.id]


def test_a_record_that_cannot_be_read_is_logged_once(
    store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    later = store.add(_task(format=FORMAT + 1), LIMITS)

    for _ in range(5):
        store.claim("w1", 10, 2, TOOLS)
        store.get(later.id)

    assert len([each for each in caplog.records if later.id in each.getMessage()]) == 1


def test_a_task_that_nobody_runs_is_removed_a_day_after_it_expired(
    store: PostgresStore, state_url: str
) -> None:
    clock = StoreClock()
    clock.url = state_url
    clock.set(NOW)
    unserved = store.add(_task(tool="gone", expires=NOW + 10), LIMITS)
    abandoned = store.add(_task(format=FORMAT + 1, expires=NOW + 10, worker="w"), LIMITS)
    running = store.add(_task(expires=NOW + 10), LIMITS)
    store.claim("w1", 2 * DAY, 1, TOOLS)

    clock.set(NOW + 20)
    soon = store.remove_expired()
    clock.set(NOW + 20 + DAY)
    late = store.remove_expired()

    assert (soon, late) == (0, 2)
    assert store.get(unserved.id) is store.get(abandoned.id) is None
    assert store.get(running.id) is not None


def test_room_of_removed_tasks_is_free_again(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "_REFRESH", 0.0)
    limits = TaskLimits(total_bytes=2_000_000)

    def is_refused() -> bool:
        try:
            store.add(_task(arguments=b"x" * 100_000), limits)
        except Unavailable:
            return True
        return False

    wait_until(is_refused)
    for task in store.page(None, None, 1000):
        store.remove(task.id)

    wait_until(lambda: not is_refused())

    assert len(store.page(None, None, 10)) == 1


def test_a_task_is_kept_right_after_the_length_of_its_queue_could_not_be_read(
    store: PostgresStore, state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "_REFRESH", 3600.0)
    with psycopg.connect(state_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE answerback.tasks RENAME TO away")
        with pytest.raises(psycopg.Error):
            store.add(_task(), LIMITS)
        connection.execute("ALTER TABLE answerback.away RENAME TO tasks")

    task = store.add(_task(), LIMITS)

    assert store.get(task.id) == task


def test_ids_that_the_database_cannot_keep_are_unknown(store: PostgresStore) -> None:
    for id in ("a\0b", "\ud800", "x" * 100_000):
        assert store.get(id) is None
        assert store.change(id, transitions.cancelled) is None
        assert store.page("ann", id, 10) == []
        store.remove(id)


def test_a_secret_can_go_once_no_part_of_a_record_needs_it(make: Make, state_url: str) -> None:
    old = make()
    mark = fingerprint_of("report", b"{}")
    task = old.add(_task(idempotency_key="k", fingerprint=mark), LIMITS)
    both = make(NEW, SECRET)
    [claim] = both.claim("w1", 10, 1, TOOLS)
    finish = partial(transitions.finished, worker="w1", fence=claim.fence, reply=success("done"))
    both.change(task.id, finish)

    before = check_state(state_url, [NEW, SECRET], processes=1).lines
    rewritten = rekey(state_url, [NEW, SECRET])
    after = check_state(state_url, [NEW, SECRET], processes=1).lines

    # The other record is the key of the fingerprints.
    assert "secrets: number 2 has sealed 2 records" in before
    assert rewritten == 2
    assert "secrets: number 2 has sealed 0 records and can go" in after
    new = make(NEW)
    assert new.add(_task(idempotency_key="k", fingerprint=mark), LIMITS).id == task.id
    assert new.get(task.id).arguments == b"{}"  # type: ignore[union-attr]  # it is there


def test_a_key_is_found_by_every_host_while_the_secret_is_changed(make: Make) -> None:
    task = _task(owner="ann", idempotency_key="k", fingerprint=b"same")

    found = [make(*each).add(task, LIMITS).id for each in ((SECRET, NEW), (NEW, SECRET))]

    assert found == [task.id] * 2
    assert len(make(NEW, SECRET).page("ann", None, 10)) == 1


def test_many_records_are_sealed_anew_in_few_transactions(make: Make, state_url: str) -> None:
    store = make()
    for number in range(300):
        store.add(_task(id=str(number), arguments=b"x" * 100), LIMITS)
    with psycopg.connect(state_url, autocommit=True) as connection:

        def transactions() -> int:
            [[number]] = connection.execute("SELECT pg_current_xact_id()::text::bigint")
            return int(number)

        before = transactions()
        done = rekey(state_url, [NEW, SECRET])
        used = transactions() - before

    assert done == 300
    assert used < 50
    new = make(NEW)
    # Few at a time: one claim is one transaction, which a busy database must end in time.
    assert sum(len(new.claim("w1", 10, 30, TOOLS)) for _ in range(10)) == 300


def test_a_record_that_is_in_use_is_sealed_anew_later_and_holds_up_no_other(
    make: Make, state_url: str
) -> None:
    store = make()
    tasks = [store.add(_task(), LIMITS) for _ in range(3)]
    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(state_url) as holder,
        psycopg.connect(state_url, autocommit=True) as connection,
    ):
        holder.execute("SELECT FROM answerback.tasks WHERE id = %s FOR UPDATE", (tasks[1].id,))
        rekeyed = threads.submit(rekey, state_url, [NEW, SECRET])
        old = "SELECT id FROM answerback.tasks WHERE substring(record from 1 for 4) = %s"
        key = Sealer(SECRET).first
        wait_until(lambda: connection.execute(old, (key,)).fetchall() == [(tasks[1].id,)])
        free = "SELECT id FROM answerback.tasks ORDER BY number FOR UPDATE SKIP LOCKED"
        wait_until(lambda: connection.execute(free).fetchall() == [(tasks[0].id,), (tasks[2].id,)])
        holder.rollback()
        done = rekeyed.result(60)

    assert done == 3
    assert [make(NEW).get(each.id) is not None for each in tasks] == [True] * 3


def test_commands_that_read_or_change_whole_tables_have_more_time_than_others(
    state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        # A connection for which no time was given has none.
        patch.setattr(inspect.unwrap(connected), "__defaults__", (0.0,))
        made = update_tables(state_url, [SECRET])
        checked = check_state(state_url, [SECRET], processes=1)

    assert made == f"the tables now have version {VERSION}"
    assert checked.problems == 0


def test_owners_and_keys_cannot_be_read_or_guessed_from_a_database(postgres: Postgres) -> None:
    found = []
    for url in (postgres.new_database(), postgres.new_database()):
        store = postgres_store(url, "jobs")
        task = store.add(_task(owner="ann", idempotency_key="order-7"), LIMITS)
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT * FROM answerback.tasks").fetchall()
            [[owner, key]] = connection.execute("SELECT owner, key FROM answerback.tasks")
        assert store.page("ann", None, 10) == [task]
        assert "ann" not in repr(rows)
        assert "order" not in repr(rows)
        found += [owner, bytes(key).hex()]

    # Who has one database cannot look for the same owner or key in another one.
    assert len(set(found)) == 4


def test_many_expired_tasks_are_removed_in_one_look(store: PostgresStore, state_url: str) -> None:
    task = store.add(_task(expires=NOW, state="completed"), LIMITS)
    with psycopg.connect(state_url) as connection:
        _copy(connection, task, 3000)

    assert store.remove_expired() == 3001


def test_what_has_not_expired_is_not_read_when_expired_rows_are_removed(
    postgres: Postgres,
) -> None:
    url = postgres.new_database()
    make_tables(url)
    columns = "app, tool, owner, state, worker, lease, fence, record, arguments, expires"
    far = 2.0**33
    with psycopg.connect(url) as connection:
        for statement in (
            f"INSERT INTO answerback.tasks (id, {columns}) SELECT n::text, 'jobs', 'report', '',"
            f" 'completed', '', 0, 0, '', '', {far} FROM generate_series(1, 5000) AS n",
            "INSERT INTO answerback.used_tokens (digest, expires)"
            f" SELECT n::text::bytea, {far} FROM generate_series(1, 5000) AS n",
            "INSERT INTO answerback.sessions (app, nonce, expires)"
            f" SELECT 'jobs', n::text::bytea, {far} FROM generate_series(1, 5000) AS n",
        ):
            connection.execute(statement.encode())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    shared = SharedState(url, [SECRET])

    PostgresStore(shared, "jobs").remove_expired()
    UsedRows(shared).add(b"token", int(far))
    SessionRows(shared, "jobs").remove_expired()
    shared.close()

    names = ("tasks_expiry", "used_tokens_expiry", "sessions_expiry")
    query = (
        "SELECT indexrelname, idx_scan, idx_tup_read FROM pg_stat_user_indexes"
        " WHERE indexrelname = ANY(%s)"
    )

    def reads() -> dict[str, tuple[int, int]]:
        # The connections of the state report what they have read when they end.
        with psycopg.connect(url) as connection:
            rows = connection.execute(query, (list(names),)).fetchall()
        return {name: (scans, read) for name, scans, read in rows}

    wait_until(lambda: all(scans for scans, _ in reads().values()))
    assert {name: read for name, (_, read) in reads().items()} == dict.fromkeys(names, 0)


def test_a_storm_of_notices_becomes_one_look_at_everything(make: Make) -> None:
    own, other = make(), make()
    changes = own.changes()

    def is_heard() -> bool:
        other._tell("first")
        return "first" in (changes.wait(1, is_urgent=False) or ())

    wait_until(is_heard)

    # Nobody reads them meanwhile.
    for number in range(20_000):
        other._tell(f"task-{number}")
    found: list[int | None] = []
    wait_until(lambda: len(changes._ids) >= 1_000)
    while (ids := changes.wait(2, is_urgent=False)) is None or ids:
        found.append(None if ids is None else len(ids))

    assert None in found
    assert max(filter(None, found), default=0) <= 1_000


@pytest.mark.parametrize("waits", ["another tool", "its own tool"])
@pytest.mark.parametrize("is_analysed", [True, False])
def test_a_claim_reads_no_more_rows_beside_many_waiting_tasks(
    postgres: Postgres, waits: str, is_analysed: bool
) -> None:
    def rows_read(beside: int) -> int:
        url = postgres.new_database()
        make_tables(url)
        with (
            closing(SharedState(url, [SECRET])) as shared,
            psycopg.connect(url, autocommit=True) as connection,
        ):
            store = PostgresStore(shared, "jobs")
            other = store.add(_task(tool="report" if waits == "its own tool" else "gone"), LIMITS)
            _copy(connection, other, beside)
            store.add(_task(), LIMITS)
            if is_analysed:
                connection.execute("ANALYZE answerback.tasks")
            before = _rows_read(shared, connection)
            claimed = store.claim("w1", 10, 1, TOOLS)
            nothing = store.claim("w1", 10, 1, ["unknown"])
            after = _rows_read(shared, connection)
        assert (len(claimed), nothing) == (1, [])
        return after - before

    few, many = rows_read(10), rows_read(5_000)

    assert many <= few + 10


def _copy(connection: psycopg.Connection[Any], task: TaskRecord, count: int) -> None:
    columns = "app, tool, owner, state, worker, lease, fence, expires, record, arguments"
    connection.execute(
        f"INSERT INTO answerback.tasks (id, {columns}) SELECT id || n, {columns}"
        " FROM answerback.tasks, generate_series(1, %s) AS n WHERE id = %s".encode(),
        (count, task.id),
    )


def _rows_read(shared: SharedState, connection: psycopg.Connection[Any]) -> int:
    """The rows and entries of indexes that were read in the table of tasks."""
    # The store's one connection reports what it has read when it is told to.
    shared.database.rows("SELECT pg_stat_force_next_flush()")
    row = connection.execute(
        "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'tasks')"
        " + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'tasks'"
    ).fetchone()
    assert row is not None
    return int(row[0])
