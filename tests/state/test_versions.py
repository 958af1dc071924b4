"""The tables' versions, migrations at once, apps that share a database, and hosts' clocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.state.hosts import answerback
from tests.state.postgres import Postgres
from tests.state.stores import SECRET, make_tables
from tests.state.test_hosts import JOBS

from answerback.core.limits import TaskLimits
from answerback.state import database as migrations
from answerback.state.database import VERSION, WrongTables
from answerback.state.maintenance import update_tables
from answerback.state.shared import SharedState, connected
from answerback.tasks.postgres_store import PostgresStore
from answerback.tasks.task_record import TaskRecord, new_id
from answerback.tasks.task_runner import is_lost, new_worker_name
from answerback.tasks.task_store import Claim

LIMITS = TaskLimits()
STEPS = Path(migrations.__file__).parent / "steps"
CHECKSUMS = {
    "001_first_tables.sql": "aac076fd5baae7ed87333569e7b6f016d7f0ec2d41624b7390b33b50d36d10ea",
    "002_whole_replies.sql": "b51fe814ffccc2ddafa5ffa3f466b3436e4f4a9ab14b59d479253d20ebdeed14",
    "003_queues_by_tool.sql": "767e37f64b29d67aa093cd86ed10a2e272c2f81342991995e17232b7843bfb6b",
}


@pytest.fixture
def shared(state_url: str) -> Iterator[SharedState]:
    make_tables(state_url)
    made = SharedState(state_url, [SECRET])
    yield made
    made.close()


def _set_version(url: str, version: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM answerback.schema_version")
        connection.execute("INSERT INTO answerback.schema_version VALUES (%s)", (version,))


def _make_earlier_tables(url: str, *steps: Path) -> None:
    """Make tables as the programs did that recorded no checksums of their steps."""
    with psycopg.connect(url) as connection:
        for version, step in enumerate(steps, 1):
            connection.execute(step.read_bytes())
            insert = "INSERT INTO answerback.schema_version (version) VALUES (%s)"
            connection.execute(insert, (version,))


def _task(tool: str = "report", **members: object) -> TaskRecord:
    given = {"id": new_id(), "tool": tool, "arguments": b"{}", "created": 1e9, "changed": 1e9}
    return TaskRecord(**{**given, **members})  # type: ignore[arg-type]  # the members are checked there


def test_a_program_runs_on_the_next_version_of_the_tables(shared: SharedState) -> None:
    _set_version(shared.database.url, VERSION + 1)
    store = PostgresStore(shared, "jobs")

    task = store.add(_task(), LIMITS)

    assert store.get(task.id) == task
    check = answerback(shared.database.url, "state", "check")
    assert f"version {VERSION + 1}" in check.stdout


def test_tables_that_are_too_old_or_too_new_are_refused_with_what_mends_it(
    shared: SharedState,
) -> None:
    url = shared.database.url
    refusals = []
    for version in (VERSION - 1, VERSION + 2):
        _set_version(url, version)
        refusals.append(answerback(url, "serve", str(JOBS), "--port", "0"))

    assert [each.returncode for each in refusals] == [2, 2]
    assert "answerback state" in refusals[0].stderr
    assert "install a later version" in refusals[1].stderr


def test_processes_that_make_the_tables_at_once_all_succeed(state_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        said = list(threads.map(lambda url: update_tables(url, [SECRET]), [state_url] * 4))

    assert sorted(said) == sorted(
        [
            f"the tables now have version {VERSION}",
            *[f"the tables already have version {VERSION}"] * 3,
        ]
    )


def test_a_worker_claims_only_tasks_of_its_app_and_its_tools(shared: SharedState) -> None:
    jobs, shop = PostgresStore(shared, "jobs"), PostgresStore(shared, "shop")
    old, new = jobs.add(_task("old"), LIMITS), jobs.add(_task("new"), LIMITS)
    shop.add(_task("old"), LIMITS)

    later_version = jobs.claim("w2", 10, 10, ["new"])
    earlier_version = jobs.claim("w1", 10, 10, ["old"])

    assert [task.id for task in later_version] == [new.id]
    assert [task.id for task in earlier_version] == [old.id]
    assert jobs.get(shop.page(None, None, 1)[0].id) is None


def test_tasks_of_an_app_are_listed_by_its_name_if_there_are_several(state_url: str) -> None:
    make_tables(state_url)
    with closing(SharedState(state_url, [b"s" * 32])) as shared:
        tasks = {app: PostgresStore(shared, app).add(_task(), LIMITS) for app in ("shop", "jobs")}

    unclear = answerback(state_url, "tasks", "list")
    listed = answerback(state_url, "tasks", "list", "--app", "shop")

    assert "pass --app: jobs, shop" in unclear.stderr
    assert [json.loads(line)["id"] for line in listed.stdout.splitlines()] == [tasks["shop"].id]


@pytest.mark.parametrize("difference", [-50.0, 50.0])
def test_times_are_counted_from_the_database_whatever_a_host_s_clock_says(
    shared: SharedState, difference: float
) -> None:
    store = PostgresStore(shared, "jobs")
    host = store.now() + difference

    task = store.add(
        _task(created=host, changed=host, expires=host + 60, worker="w", lease=host + 30), LIMITS
    )

    now = store.now()
    assert abs(task.created - now) < 20
    assert task.expires == task.created + 60
    assert task.lease == task.created + 30
    assert [claim.lease for claim in store.claims()] == [task.lease]


def test_a_worker_of_another_boot_or_with_a_forged_name_is_judged_by_its_lease() -> None:
    pid, machine, number = new_worker_name().split("/")
    dead = f"{2**22 + 1}/{machine}/{number}"
    names = [
        f"{2**22 + 1}/another-boot:{machine.partition(':')[2]}/{number}",
        f"{pid}0x/{machine}/{number}",
        f"{10**30}/{machine}/{number}",
        "forged",
    ]

    def lost(name: str, lease: float) -> bool:
        return is_lost(Claim("id", name, 1, lease), now=100.0)

    assert [lost(name, 101.0) for name in names] == [False] * 4
    assert [lost(name, 99.0) for name in names] == [True] * 4
    assert lost(dead, 101.0)


def test_tables_of_an_earlier_version_are_refused_with_the_command_that_upgrades_them(
    shared: SharedState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "VERSION", VERSION + 1)

    with connected(shared.database.url) as connection, pytest.raises(WrongTables) as refusal:
        migrations.check_version(connection)

    assert "answerback state upgrade" in str(refusal.value)


def test_a_user_who_may_not_make_tables_reads_why(state_url: str) -> None:
    with psycopg.connect(state_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS limited")
        connection.execute("CREATE ROLE limited LOGIN")

    refused = answerback(state_url.replace("postgres@", "limited@"), "state", "init")

    assert refused.returncode == 2
    assert "permission denied" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_steps_of_the_tables_never_change_because_databases_were_made_by_them() -> None:
    """Changed tables need a new step; add its checksum here."""
    found = {
        step.name: hashlib.sha256(step.read_bytes()).hexdigest() for step in STEPS.glob("*.sql")
    }

    assert found == CHECKSUMS


@pytest.mark.parametrize("version", range(1, VERSION))
def test_tables_of_each_earlier_version_are_upgraded_and_their_tasks_run(
    shared: SharedState, postgres: Postgres, version: int
) -> None:
    earlier = postgres.new_database()
    _make_earlier_tables(earlier, *[STEPS / name for name in CHECKSUMS][:version])
    task = PostgresStore(shared, "jobs").add(_task(), LIMITS)
    with psycopg.connect(shared.database.url) as source, psycopg.connect(earlier) as target:
        columns = "id, app, tool, owner, state, worker, lease, fence, record, arguments, answers"
        [row] = source.execute(f"SELECT {columns} FROM answerback.tasks".encode())
        places = ", ".join(["%s"] * len(row))
        target.execute(f"INSERT INTO answerback.tasks ({columns}) VALUES ({places})".encode(), row)

    upgraded = answerback(earlier, "state", "upgrade")

    assert upgraded.stdout == f"the tables now have version {VERSION}, up from {version}\n"
    with closing(SharedState(earlier, [SECRET])) as state:
        claimed = PostgresStore(state, "jobs").claim("w1", 10, 10, ["report"])
    assert [each.id for each in claimed] == [task.id]


def test_an_upgrade_that_would_leave_the_tables_incomplete_changes_nothing_and_says_why(
    state_url: str,
) -> None:
    _make_earlier_tables(state_url, Path(__file__).parent / "earlier" / "001_first_tables.sql")

    refused = answerback(state_url, "state", "upgrade")

    assert refused.returncode == 2
    assert "fingerprint_key.sealed bytea" in refused.stderr
    assert "answerback state init" in refused.stderr
    with psycopg.connect(state_url) as connection:
        assert connection.execute("SELECT version FROM answerback.schema_version").fetchall() == [
            (1,)
        ]


def test_tables_that_were_changed_by_hand_are_a_problem_with_the_name_of_what_is_missing(
    shared: SharedState,
) -> None:
    url = shared.database.url
    with psycopg.connect(url) as connection:
        connection.execute("DROP INDEX answerback.tasks_queues")

    upgraded, checked = answerback(url, "state", "upgrade"), answerback(url, "state", "check")

    assert (upgraded.returncode, checked.returncode) == (2, 1)
    assert "index tasks_queues" in upgraded.stderr
    assert "index tasks_queues" in checked.stdout


def test_tables_made_by_other_steps_of_the_same_number_are_refused(shared: SharedState) -> None:
    url = shared.database.url
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE answerback.schema_version SET checksum = 'x' WHERE version = 2")

    refused = [
        answerback(url, "state", "upgrade"),
        answerback(url, "serve", str(JOBS), "--port", "0"),
    ]

    assert [each.returncode for each in refused] == [2, 2]
    assert all("002_whole_replies.sql" in each.stderr for each in refused)


def test_the_list_of_what_the_tables_have_is_complete(shared: SharedState) -> None:
    columns = """
        SELECT table_name || '.' || column_name || ' ' || udt_name
        FROM information_schema.columns WHERE table_schema = 'answerback'
    """
    others = """
        SELECT 'index ' || indexname FROM pg_indexes WHERE schemaname = 'answerback'
        UNION ALL SELECT 'function ' || routine_name FROM information_schema.routines
        WHERE routine_schema = 'answerback'
    """
    with psycopg.connect(shared.database.url) as connection:
        found = sorted(row[0] for row in connection.execute(f"{columns} UNION ALL {others}"))

    assert (STEPS / "made.txt").read_text().splitlines() == found
