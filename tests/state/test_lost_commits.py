"""The database commits, and its reply is lost: nothing may stay claimed by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.fuzz.stdio_client import wait_until
from tests.state.hosts import started
from tests.state.postgres import Postgres
from tests.state.stores import make_tables
from tests.state.tcp_proxy import Proxy
from tests.state.test_hosts import ASYNC, JOBS, ended, result

KEY = {"Idempotency-Key": "k-1"}


@pytest.fixture
def proxy(postgres: Postgres, state_url: str) -> Iterator[Proxy]:
    """A proxy before a database with tables."""
    make_tables(state_url)
    proxy = Proxy([postgres.port])
    yield proxy
    proxy.close()


@pytest.fixture
def url(proxy: Proxy, state_url: str) -> str:
    name = state_url.rpartition("/")[2]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}"


def test_a_task_whose_commit_had_no_reply_is_run_when_its_key_is_repeated(
    proxy: Proxy, url: str
) -> None:
    with started(url, JOBS, "serve") as server:
        task = f"{server.url}/functions/job"
        proxy.lose_reply(b"COMMIT", following=b"INSERT INTO answerback.tasks")
        first = httpx.post(task, json={"steps": 1}, headers=ASYNC | KEY, timeout=30)
        assert proxy.lost.wait(30)

        def again() -> httpx.Response:
            return httpx.post(task, json={"steps": 1}, headers=ASYNC | KEY, timeout=30)

        wait_until(lambda: again().status_code == 202)

        assert first.status_code == 503
        assert result(server, str(httpx.URL(again().headers["Location"]).path))


def test_a_claim_whose_commit_had_no_reply_is_given_back(
    proxy: Proxy, url: str, state_url: str, tmp_path: Path
) -> None:
    target = tmp_path / "file"
    target.touch()
    with ExitStack() as stack:
        server = stack.enter_context(started(state_url, JOBS, "serve", "--no-tasks"))
        stack.enter_context(started(url, JOBS, "worker"))
        proxy.lose_reply(b"COMMIT", following=b"ORDER BY number LIMIT")
        response = httpx.post(
            f"{server.url}/functions/until", json={"path": str(target)}, headers=ASYNC, timeout=30
        )
        assert proxy.lost.wait(30)

        # The tool is not idempotent: a worker that was lost would have failed the task.
        assert ended(server, str(httpx.URL(response.headers["Location"]).path)) == "completed"


def test_a_keyed_call_whose_commit_had_no_reply_runs_when_it_is_repeated(
    proxy: Proxy, url: str
) -> None:
    with started(url, JOBS, "serve") as server:
        call = f"{server.url}/functions/pid"
        proxy.lose_reply(b"COMMIT", following=b"INSERT INTO answerback.tasks")
        first = httpx.post(call, json={"n": 1}, headers=KEY, timeout=30)
        assert proxy.lost.wait(30)

        def again() -> httpx.Response:
            return httpx.post(call, json={"n": 1}, headers=KEY, timeout=30)

        replies = [again()]
        while replies[-1].status_code in (409, 503):
            replies.append(again())

        assert first.status_code == 503
        assert replies[-1].json() == {"result": server.process.pid}


def test_a_keyed_call_that_was_refused_while_the_database_was_away_runs_when_it_is_repeated(
    proxy: Proxy, url: str, tmp_path: Path
) -> None:
    target = tmp_path / "file"
    with started(url, JOBS, "serve") as server, ThreadPoolExecutor(1) as threads:

        def call() -> httpx.Response:
            arguments = {"path": str(target)}
            return httpx.post(
                f"{server.url}/functions/down", json=arguments, headers=KEY, timeout=60
            )

        first = threads.submit(call)
        wait_until((tmp_path / "file.begun").exists)
        proxy.stall()
        target.touch()
        assert first.result().status_code == 503
        proxy.resume()
        replies = [call()]
        while replies[-1].status_code in (409, 503):
            replies.append(call())

        assert replies[-1].json() == {"result": "done"}


def test_connections_that_are_cut_are_opened_again(proxy: Proxy, url: str, state_url: str) -> None:
    with started(url, JOBS, "serve") as server:
        task = f"{server.url}/functions/job"

        def is_accepted() -> bool:
            response = httpx.post(task, json={"steps": 1}, headers=ASYNC, timeout=30)
            assert response.status_code in (202, 503)
            return response.status_code == 202

        wait_until(is_accepted)
        proxy.cut()
        wait_until(is_accepted)
        with psycopg.connect(state_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'answerback'"
            )
        wait_until(is_accepted)
        proxy.stall()
        assert httpx.post(task, json={"steps": 1}, headers=ASYNC, timeout=30).status_code == 503
        proxy.resume()
        wait_until(is_accepted)
