"""Clusters whose parts fail under load: each task ends once, and no effect happens twice.

`make faults` makes more kinds of faults, and more of each.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.fuzz.stdio_client import wait_until
from tests.state.cluster import Cluster, Member
from tests.state.faults import different_clocks, kills, no_space
from tests.state.load import Load
from tests.state.postgres import Postgres

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL that keeps its promise when it is killed."""
    postgres = Postgres(durable=True)
    yield postgres
    postgres.close()


@pytest.fixture
def cluster(own_postgres: Postgres, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, own_postgres)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def load(cluster: Cluster) -> Load:
    return Load(cluster.url, cluster.folder / "starts")


def test_nothing_is_lost_or_doubled_if_workers_servers_and_the_database_are_killed(
    cluster: Cluster, load: Load
) -> None:
    kills(cluster, load, random.Random(1), rounds=3)
    load.finish()

    assert load.wrong == []
    assert len(load.tasks) == 150
    assert load.calls.total() == 150


def test_hosts_whose_clocks_differ_lose_no_task(cluster: Cluster, load: Load) -> None:
    different_clocks(cluster, load, random.Random(1))
    load.finish()

    assert load.wrong == []
    assert set(load.states.values()) == {"completed"}


def test_a_task_on_another_machine_is_not_given_up_although_its_process_is_unknown_here(
    own_postgres: Postgres, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, own_postgres)
    server, (stranger, local) = cluster.servers[1], cluster.workers
    stranger.environment["FAULT_BOOT"] = "00000000-0000-0000-0000-000000000000:1"
    stranger.flags = ["--concurrency", "1"]
    starts, end = tmp_path / "starts", tmp_path / "end"
    starts.touch()

    def begin(n: int, worker: Member) -> str:
        """Create a task, and wait until this worker runs it; return its address."""
        worker.start()
        arguments = {"n": n, "path": str(end)}
        created = httpx.post(f"{server.url}/functions/hold", json=arguments, timeout=30)
        wait_until(lambda: f"hold {n}\n" in starts.read_text())
        return str(httpx.URL(server.url).join(created.headers["Location"]))

    def ended(task: str) -> str:
        return str(httpx.get(task, headers={"Prefer": "wait=20"}, timeout=60).json()["status"])

    try:
        cluster.command("state", "init")
        server.start()
        server.wait_until_ready()
        strange = begin(0, stranger)
        # The stranger's one slot is taken, so the others run at the local worker.
        for n in (1, 2):
            task = begin(n, local)
            local.stop(signal.SIGKILL)
            # The server has looked at all claims once before it ends the second of these.
            assert ended(task) == "failed"
        end.touch()

        assert ended(strange) == "completed"
    finally:
        cluster.close()


def test_a_full_disk_costs_no_acknowledged_task(cluster: Cluster, load: Load) -> None:
    postgres = cluster.postgres

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

    pids = [int(word) for word in shown.split() if word.isdecimal() and f"pid {word}" in shown]
    assert len(pids) == 5
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert rest.endswith("everything has ended\n")
    assert process.returncode == 0
