"""The tables' versions, migrations at once, apps that share a database, and hosts' clocks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.state.hosts import answerback
from tests.state.stores import SECRET, make_tables
from tests.state.test_hosts import JOBS

from answerback.core.limits import TaskLimits
from answerback.state import migrations
from answerback.state.maintenance import update_tables
from answerback.state.migrations import VERSION, WrongTables
from answerback.state.shared import SharedState, connected
from answerback.tasks.postgres_store import PostgresStore
from answerback.tasks.task_record import TaskRecord, new_id
from answerback.tasks.task_store import Claim
from answerback.tasks.task_watch import is_lost, new_worker_name

LIMITS = TaskLimits()


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
        said = list(threads.map(update_tables, [state_url] * 4))

    assert sorted(said) == sorted(
        [
            f"the tables have version {VERSION} now",
            *[f"the tables have version {VERSION} already"] * 3,
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
