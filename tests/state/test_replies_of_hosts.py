"""Whole replies on several hosts: kept by one, read at all, sealed in the database."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import Server
from tests.fitting.kept_app import report, whole_of
from tests.ports import free_port
from tests.state.postgres import Postgres
from tests.state.stores import make_tables
from tests.state.tcp_proxy import Proxy

from answerback import connect
from answerback.errors import Unavailable
from answerback.fitting.postgres_replies import PostgresReplies
from answerback.fitting.reply_store import Owner, StoredReplies
from answerback.options import ReplyLimits
from answerback.state.shared import SharedState

KEPT = Path(__file__).parents[1] / "fitting" / "kept_app.py"
OLD, NEW = "o" * 32, "n" * 32
Open = Callable[..., PostgresReplies]
LIMITS = ReplyLimits()


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_whole_reply_of_one_host_is_read_at_another_until_its_session_ends(
    start_app: Callable[..., Server], version: str
) -> None:
    first, second = (f"{start_app(KEPT, 'serve').url}/mcp" for _ in range(2))

    async def run() -> list[Any]:
        async with connect(second) as other:
            async with connect(first, version=version) as server:
                uri = whole_of(await server.call("read_rows"))
                during = await other.read(f"{uri}?path=items&offset=20")
            return [during.content[0], (await other.read(uri)).ok]

    block, is_left = asyncio.run(run())

    assert json.loads(block.text) == report()["items"][20:]
    assert is_left == (version == "2026-07-28")


def test_the_database_shows_neither_a_reply_nor_its_id(
    start_app: Callable[..., Server], state_url: str
) -> None:
    url = f"{start_app(KEPT, 'serve').url}/mcp"

    async def run() -> str:
        async with connect(url) as server:
            return whole_of(await server.call("read_rows"))

    id = asyncio.run(run()).rpartition("/")[2]
    with psycopg.connect(state_url) as connection:
        rows = connection.execute("SELECT * FROM answerback.wholes").fetchall()

    assert len(rows) == 1
    assert id not in repr(rows)
    assert "127.0.0.1" not in repr(rows)
    assert b"two" not in b"".join(each for each in rows[0] if isinstance(each, bytes))


@pytest.fixture
def open_store(state_url: str) -> Iterator[Open]:
    """Opens the whole replies of one more process: `open_store(secret, app="shop")`."""
    make_tables(state_url)
    with ExitStack() as stack:

        def opened(secret: str = NEW, url: str = state_url, app: str = "kept") -> PostgresReplies:
            shared = SharedState(url, [secret.encode()])
            stack.callback(shared.close)
            return PostgresReplies(shared, app)

        yield opened


def test_a_whole_reply_whose_owner_was_changed_in_the_database_cannot_be_read(
    open_store: Open, state_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    store.add("id", b"[]", Owner(user="ada", tool="report"), LIMITS)
    with psycopg.connect(state_url) as connection:
        connection.execute("UPDATE answerback.wholes SET owner = ''")

    assert store.get("id", "ada") is None
    assert "cannot read a full reply from 'report'" in caplog.text


def test_a_whole_reply_is_read_from_the_database_without_overhead(
    open_store: Open, postgres: Postgres, state_url: str
) -> None:
    body = bytes(1_000_000)
    proxy = Proxy([postgres.port])
    store = open_store(url=state_url.replace(f":{postgres.port}/", f":{proxy.port}/"))
    store.add("id", body, Owner(), LIMITS)
    before = proxy.replied

    found = store.get("id", "ada")
    proxy.close()

    assert found is not None
    assert found.body == body
    assert proxy.replied - before < 1.1 * len(body)


def test_another_app_in_the_same_database_has_its_own_whole_replies(open_store: Open) -> None:
    kept, shop = open_store(), open_store(app="shop")
    one = ReplyLimits(count=1)

    kept.add("id", b"[]", Owner(), one)
    shop.add("other", b"[]", Owner(), one)

    assert shop.get("id", "ada") is None
    assert kept.get("id", "ada") is not None


def test_expired_whole_replies_are_removed_from_the_database(
    open_store: Open, state_url: str
) -> None:
    store = open_store()
    store.add("id", b"[]", Owner(), LIMITS)
    with psycopg.connect(state_url, autocommit=True) as connection:
        connection.execute("UPDATE answerback.wholes SET expires = 0")

        found = store.get("id", "ada")
        store.remove_expired()

        assert found is None
        assert connection.execute("SELECT count(*) FROM answerback.wholes").fetchone() == (0,)


def test_whole_replies_are_sealed_anew_with_a_new_secret(open_store: Open, state_url: str) -> None:
    open_store(OLD).add("id", b"[1]", Owner(user="ada"), LIMITS)
    secrets = f"{NEW},{OLD}"

    def run(command: str) -> str:
        environment = {**os.environ, "ANSWERBACK_SECRET": secrets, "ANSWERBACK_STATE": state_url}
        return subprocess.run(
            [sys.executable, "-m", "answerback", "state", command],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout

    before, rekeyed, after = run("check"), run("rekey"), run("check")

    # The key of the fingerprints is one of the records.
    assert "number 2 has sealed 2 records" in before
    assert rekeyed == "re-encrypted 2 records\n"
    assert "number 2 has sealed 0 records and can go" in after
    whole = open_store(NEW).get("id", "ada")
    assert whole is not None
    assert whole.body == b"[1]"


def test_without_the_database_a_reply_has_no_whole_and_reading_one_says_to_try_again(
    open_store: Open,
) -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    replies = StoredReplies(open_store(url=url), LIMITS)

    assert asyncio.run(replies.keep(b"[]", Owner())) is None
    with pytest.raises(Unavailable) as refused:
        asyncio.run(replies.find("id", ""))
    assert refused.value.retryable
