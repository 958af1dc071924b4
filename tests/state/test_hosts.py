"""Servers and workers that share a database: a task begins at one and is seen at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.conftest import Server
from tests.fuzz.stdio_client import wait_until
from tests.state.hosts import answerback, environment, started
from tests.state.postgres import Postgres
from tests.state.stores import make_tables

JOBS = Path(__file__).parent / "jobs.py"
ASYNC = {"Prefer": "respond-async"}
WAIT = {"Prefer": "wait=20"}
Start = Callable[..., Server]


@pytest.fixture
def start(start_app: Callable[..., Server]) -> Start:
    """Starts servers and workers of the app with jobs."""
    return partial(start_app, JOBS)


class Hosts(NamedTuple):
    """Two servers that leave the tasks to a worker."""

    first: Server
    second: Server
    worker: Server


@pytest.fixture(scope="module")
def hosts(postgres: Postgres) -> Iterator[Hosts]:
    """Hosts that several tests share: each calls tools of its own."""
    url = postgres.new_database()
    make_tables(url)
    with ExitStack() as stack:
        stack.callback(postgres.drop, url)

        def begin(*arguments: str) -> Server:
            return stack.enter_context(started(url, JOBS, *arguments))

        yield Hosts(begin("serve", "--no-tasks"), begin("serve", "--no-tasks"), begin("worker"))


def create(server: Server, tool: str, /, **arguments: Any) -> str:
    """Create a task; return its path."""
    url = f"{server.url}/functions/{tool}"
    response = httpx.post(url, json=arguments, headers=ASYNC, timeout=30)
    assert response.status_code == 202, response.text
    return str(httpx.URL(response.headers["Location"]).path)


def begin(server: Server) -> httpx.Response:
    """Ask for a short task."""
    url = f"{server.url}/functions/job"
    return httpx.post(url, json={"steps": 1}, headers=ASYNC, timeout=30)


def ended(server: Server, path: str) -> str:
    """Wait at a server until a task has ended; return its state."""
    response = httpx.get(f"{server.url}{path}", headers=WAIT, timeout=60)
    return str(response.json()["status"])


def result(server: Server, path: str) -> Any:
    """Wait at a server for a task's result."""
    assert ended(server, path) == "completed"
    return httpx.get(f"{server.url}{path}/result", timeout=30).json()["result"]


def test_a_task_of_one_server_is_run_by_a_worker_and_read_at_another_server(hosts: Hosts) -> None:
    found = result(hosts.second, create(hosts.first, "job", steps=3))

    assert found == hosts.worker.process.pid


def test_a_task_is_cancelled_at_another_host(hosts: Hosts, tmp_path: Path) -> None:
    path = create(hosts.first, "until", path=str(tmp_path / "never"))
    wait_until((tmp_path / "never.begun").exists)

    httpx.delete(f"{hosts.second.url}{path}", timeout=30)

    assert ended(hosts.first, path) == "cancelled"


def test_a_key_that_one_host_has_used_gives_the_same_reply_at_another(hosts: Hosts) -> None:
    headers = {"Idempotency-Key": "one"}

    replies = [
        httpx.post(f"{each.url}/functions/pid", json={"n": 1}, headers=headers).json()["result"]
        for each in (hosts.first, hosts.second)
    ]

    assert replies == [hosts.first.process.pid] * 2


def test_hosts_count_the_calls_and_tasks_of_a_limit_together(start: Start) -> None:
    hosts = [start("serve"), start("serve", "--workers", "2")]

    statuses = [
        httpx.post(f"{host.url}/functions/rare", json={}, headers=headers, timeout=30).status_code
        for headers in (ASYNC, {}, {})
        for host in hosts
    ]

    assert statuses == [202, 202, 200, 429, 429, 429]


def test_a_breaker_that_opens_at_one_host_lets_calls_pass_at_another(hosts: Hosts) -> None:
    def pay(server: Server, succeed: bool) -> int:
        url = f"{server.url}/functions/pay"
        return httpx.post(url, json={"succeed": succeed}, timeout=30).status_code

    pay(hosts.first, False)
    found = [(pay(hosts.first, True), pay(hosts.second, True)) for _ in range(20)]

    assert found == [(503, 200)] * 20


def test_an_idempotent_task_of_a_killed_worker_is_run_again_by_another(start: Start) -> None:
    server = start("serve", "--no-tasks")
    lost = start("worker")
    path = create(server, "job", steps=40)
    wait_until(lambda: "of 40" in httpx.get(f"{server.url}{path}").text)

    lost.process.send_signal(signal.SIGKILL)
    lost.process.wait(60)
    found = start("worker")

    assert result(server, path) == found.process.pid


def test_a_database_that_is_away_costs_the_tasks_and_not_the_calls(
    postgres: Postgres, hosts: Hosts
) -> None:
    server = hosts.first
    postgres.pause()
    try:
        task = httpx.post(
            f"{server.url}/functions/job", json={"steps": 1}, headers=ASYNC, timeout=30
        )
        call = httpx.post(f"{server.url}/functions/add", json={"x": 1, "y": 2}, timeout=30)
    finally:
        postgres.resume()

    assert task.status_code == 503
    assert task.headers["Retry-After"]
    assert call.json() == {"result": 3}
    wait_until(
        lambda: (
            httpx.post(
                f"{server.url}/functions/job", json={"steps": 1}, headers=ASYNC, timeout=30
            ).status_code
            == 202
        )
    )


def test_a_server_without_tables_or_without_a_secret_says_what_to_do(state_url: str) -> None:
    without_tables = answerback(state_url, "serve", str(JOBS), "--port", "0")
    without_secret = subprocess.run(
        [sys.executable, str(JOBS), "serve", "--port", "0", "--state", state_url],
        env={**os.environ, "ANSWERBACK_SECRET": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "answerback state init" in without_tables.stderr
    assert "ANSWERBACK_SECRET" in without_secret.stderr
    assert (without_tables.returncode, without_secret.returncode) == (2, 2)


def test_a_host_with_another_secret_is_refused(start: Start, state_url: str) -> None:
    start("serve")

    other = subprocess.run(
        [sys.executable, str(JOBS), "serve", "--port", "0"],
        env={**environment(state_url), "ANSWERBACK_SECRET": "n" * 32},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "set ANSWERBACK_SECRET=new,old to change it" in other.stderr
    assert other.returncode == 2


@pytest.mark.parametrize("command", ["init", "upgrade"])
def test_the_command_that_makes_the_tables_decides_which_secret_is_right(
    state_url: str, command: str
) -> None:
    made = answerback(state_url, "state", command)

    refused = [
        answerback(state_url, *arguments, secret="n" * 32)
        for arguments in (("serve", str(JOBS), "--port", "0"), ("state", command))
    ]

    assert (made.returncode, made.stderr) == (0, "")
    assert [each.returncode for each in refused] == [2, 2]
    assert all("ANSWERBACK_SECRET is not the secret" in each.stderr for each in refused)


def test_tables_without_a_secret_are_reported_until_one_is_bound(state_url: str) -> None:
    made = answerback(state_url, "state", "init", secret="")
    before = answerback(state_url, "state", "check")
    answerback(state_url, "state", "init")
    after = answerback(state_url, "state", "check")
    other = answerback(state_url, "state", "check", secret="n" * 32)

    assert "no secret is bound" in made.stdout
    assert "warning: no secret is bound" in before.stdout
    assert "bound" not in after.stdout
    assert [each.returncode for each in (before, after, other)] == [0, 0, 1]
    assert "problem: 1 record was sealed with another secret" in other.stdout


def test_records_are_sealed_anew_with_the_first_secret(start: Start, state_url: str) -> None:
    server = start("serve")
    path = create(server, "job", steps=1)
    ended(server, path)
    rotated = {**environment(state_url), "ANSWERBACK_SECRET": f"{'n' * 32},{'s' * 32}"}
    command = [sys.executable, "-m", "answerback", "state"]

    def run(subcommand: str) -> str:
        done = subprocess.run(
            [*command, subcommand], env=rotated, capture_output=True, text=True, check=True
        )
        return done.stdout

    before, rekeyed, after = run("check"), run("rekey"), run("check")

    # The other record is the key of the fingerprints.
    assert "number 2 has sealed 2 records" in before
    assert rekeyed == "re-encrypted 2 records\n"
    assert "number 2 has sealed 0 records and can go" in after


def test_the_database_shows_no_argument_and_no_result(
    start: Start, state_url: str, postgres: Postgres, tmp_path: Path
) -> None:
    import psycopg

    server = start("serve")
    target = tmp_path / "a-private-name"
    target.touch()
    ended(server, create(server, "until", path=str(target)))

    with psycopg.connect(state_url) as connection:
        rows = connection.execute("SELECT * FROM answerback.tasks").fetchall()

    assert len(rows) == 1
    assert "private" not in repr(rows)
