"""Clusters whose parts fail under load: each task ends once, and no effect happens twice.

`make faults` makes more kinds of faults, and more of each.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.fuzz.stdio_client import wait_until
from tests.state.cluster import Cluster, Member
from tests.state.fault_kinds import Run, kills, no_space, set_clocks
from tests.state.load import Load
from tests.state.postgres import Postgres
from tests.state.session_load import Sessions
from tests.state.stores import make_tables

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def cluster(postgres: Postgres, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that is not started yet.

    Its PostgreSQL does not wait for the disk, which matters only if the whole machine crashes.
    """
    cluster = Cluster(tmp_path, postgres)
    yield cluster
    cluster.close()
    postgres.drop(cluster.database)


@pytest.fixture
def load(cluster: Cluster) -> Load:
    return Load(cluster.url, cluster.folder / "starts")


@pytest.fixture
def run(cluster: Cluster, load: Load) -> Run:
    sessions = Sessions(cluster.url, [server.url for server in cluster.servers])
    return Run(cluster, load, sessions, random.Random(1))


def test_nothing_is_lost_or_doubled_if_workers_servers_and_the_database_are_killed(
    run: Run,
) -> None:
    run.cluster.start()
    run.sessions.start()
    kills(run, rounds=3, calls=100)
    run.load.finish()
    run.sessions.finish()

    assert run.load.wrong == []
    assert run.sessions.wrong == []
    assert run.sessions.ended
    assert len(run.load.tasks) == 150
    assert run.load.calls.total() == 150


def test_hosts_whose_clocks_differ_lose_no_task(run: Run) -> None:
    set_clocks(run.cluster)
    run.cluster.start()
    run.load.send(range(100))
    run.load.finish()

    assert run.load.wrong == []
    assert set(run.load.states.values()) == {"completed"}


class Hosts:
    """A server without tasks, a worker that seems to run on another machine, and a local worker."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.server, (self.stranger, self.local) = cluster.servers[1], cluster.workers
        # A live worker, whose process id this machine does not have.
        self.stranger.environment["FAULT_BOOT"] = "00000000-0000-0000-0000-000000000000:1"
        self.stranger.flags = ["--concurrency", "1"]
        self.end = cluster.folder / "end"
        self._starts = cluster.folder / "starts"
        self._starts.touch()

    def start(self) -> None:
        make_tables(self.cluster.database)
        # Claims last shorter, so that a worker renews them sooner.
        self.cluster.environment["FAULT_LEASE"] = "9"
        self.server.start()
        self.server.wait_until_ready()

    def begin(self, n: int, worker: Member) -> str:
        """Start a worker, and a task that it runs until the end; return the task's path."""
        worker.start()
        arguments = {"n": n, "path": str(self.end)}
        created = httpx.post(f"{self.server.url}/functions/hold", json=arguments, timeout=30)
        wait_until(lambda: f"hold {n}\n" in self._starts.read_text())
        return str(httpx.URL(created.headers["Location"]).path)

    def ended(self, path: str) -> str:
        url = f"{self.server.url}{path}"
        return str(httpx.get(url, headers={"Prefer": "wait=20"}, timeout=60).json()["status"])


@pytest.fixture
def hosts(cluster: Cluster) -> Hosts:
    hosts = Hosts(cluster)
    hosts.start()
    return hosts


def test_a_task_on_another_machine_is_not_given_up_although_its_process_is_unknown_here(
    hosts: Hosts,
) -> None:
    strange = hosts.begin(0, hosts.stranger)
    # The stranger's one slot is taken, so the others run at the local worker.
    for n in (1, 2):
        task = hosts.begin(n, hosts.local)
        hosts.local.stop(signal.SIGKILL)
        # The server has looked at all claims once before it ends the second of these.
        assert hosts.ended(task) == "failed"
    hosts.end.touch()

    assert hosts.ended(strange) == "completed"


def test_a_server_that_starts_after_a_long_outage_lets_workers_renew_their_claims(
    hosts: Hosts,
) -> None:
    task = hosts.begin(0, hosts.stranger)
    hosts.server.stop()
    with psycopg.connect(hosts.cluster.database, autocommit=True) as connection:
        # As after an outage in which the worker could not renew its claim.
        connection.execute("UPDATE answerback.tasks SET lease = 0")
        hosts.server.start()
        hosts.server.wait_until_ready()
        query = "SELECT lease > 0 OR state <> 'working' FROM answerback.tasks"
        wait_until(lambda: connection.execute(query).fetchone() == (True,))
    hosts.end.touch()

    assert hosts.ended(task) == "completed"


def test_a_full_disk_costs_no_acknowledged_task(cluster: Cluster, load: Load) -> None:
    postgres = cluster.postgres
    cluster.start()

    def fill() -> None:
        with no_space(postgres):
            url = f"{cluster.servers[1].url}/functions/again"
            while httpx.post(url, json={"n": -1}, timeout=10).status_code != 503:
                pass
        if not postgres.is_running:
            postgres.start()

    load.send(range(40), fill)
    load.finish()

    assert load.wrong == []
    assert set(load.states.values()) == {"completed"}


def test_the_cluster_of_one_command_shows_what_happens_and_ends_cleanly() -> None:
    command = [sys.executable, "-m", "tests.state.cluster"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = ""
        while " completed" not in shown:
            line = process.stdout.readline()
            assert line, f"the cluster ended: {shown}"
            shown += line
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)

    pids = re.findall(r"pid (\d+)", shown)
    assert len(pids) == 5
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert rest.endswith("everything has ended\n")
    assert process.returncode == 0
