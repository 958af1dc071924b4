"""Kept replies stay within their limits, and one caller does not push out the others."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.state.stores import SECRET, make_tables

from answerback.fitting.postgres_replies import PostgresReplies
from answerback.fitting.reply_store import PREFIX, Owner, ReplyStore, SQLiteReplies, StoredReplies
from answerback.options import ReplyLimits
from answerback.state.shared import SharedState

MANY_CALLERS = Path(__file__).parent / "many_callers.py"


@pytest.fixture(params=["process", "workers", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReplyStore]:
    if request.param != "database":
        made = SQLiteReplies("" if request.param == "process" else str(tmp_path / "replies.db"))
        yield made
        made.close()
        return
    url = request.getfixturevalue("state_url")
    make_tables(url)
    shared = SharedState(url, [SECRET])
    yield PostgresReplies(shared, "kept")
    shared.close()


class Caller:
    """Keeps replies for one user, and says which of them are still there."""

    def __init__(self, replies: StoredReplies, name: str) -> None:
        self._replies = replies
        self._owner = Owner(user=name, session=f"session of {name}", tool="report")
        self._kept: list[str] = []

    def keep(self, *bodies: bytes) -> None:
        for body in bodies:
            uri = asyncio.run(self._replies.keep(body, self._owner))
            assert uri is not None
            self._kept.append(uri.removeprefix(PREFIX))

    @property
    def left(self) -> list[bytes]:
        found = [asyncio.run(self._replies.find(id, self._owner.user)) for id in self._kept]
        return [each.body for each in found if each is not None]


def _limited(store: ReplyStore, **limits: Any) -> Callable[[str], Caller]:
    replies = StoredReplies(store, ReplyLimits(**limits))
    return lambda name: Caller(replies, name)


def test_an_owner_s_oldest_reply_makes_room_for_the_next_one(store: ReplyStore) -> None:
    caller = _limited(store, per_owner=3)
    ada, bob = caller("ada"), caller("bob")

    bob.keep(b"[0]")
    ada.keep(*(b"[%d]" % number for number in range(5)))

    assert ada.left == [b"[2]", b"[3]", b"[4]"]
    assert bob.left == [b"[0]"]


def test_a_reply_that_is_sent_again_is_kept_once_and_for_each_caller_apart(
    store: ReplyStore,
) -> None:
    replies = StoredReplies(store, ReplyLimits())
    ada, bob = Owner(user="ada", tool="report"), Owner(user="bob", tool="report")

    uris = [asyncio.run(replies.keep(b"[1]", each)) for each in (ada, ada, bob)]

    assert uris[0] == uris[1] != uris[2]


def test_an_owner_s_replies_stay_within_its_bytes(store: ReplyStore) -> None:
    ada = _limited(store, reply_bytes=600, owner_bytes=1_000)("ada")

    ada.keep(b"a" * 300, b"b" * 300, b"c" * 600)

    assert ada.left == [b"b" * 300, b"c" * 600]


@pytest.mark.parametrize(
    "limits", [{"count": 20}, {"reply_bytes": 100, "owner_bytes": 2_000, "total_bytes": 2_000}]
)
def test_the_owner_that_has_most_makes_room_for_others(
    store: ReplyStore, limits: dict[str, int]
) -> None:
    caller = _limited(store, **limits)
    ada, bob, greedy = caller("ada"), caller("bob"), caller("greedy")

    ada.keep(b"a" * 100)
    greedy.keep(*(b"%100d" % number for number in range(50)))
    bob.keep(b"b" * 100)

    assert (len(ada.left), len(bob.left)) == (1, 1)
    assert 10 <= len(greedy.left) <= 18


def test_many_sessions_from_one_address_do_not_push_out_the_replies_of_another(
    store: ReplyStore,
) -> None:
    """Without auth, each of them holds less than the other address's only session."""
    replies = StoredReplies(store, ReplyLimits(count=20))

    def keep(number: int, session: str, address: str) -> str:
        owner = Owner(session=session, address=address, tool="report")
        uri = asyncio.run(replies.keep(b"%100d" % number, owner))
        assert uri is not None
        return uri.removeprefix(PREFIX)

    kept = [keep(number, "its session", "192.0.2.1") for number in range(3)]
    for number in range(50):
        keep(number, f"session {number}", "192.0.2.2")

    assert [asyncio.run(replies.find(id, "")) is not None for id in kept] == [True] * 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 0}, "count=0 should be a whole number of at least 1"),
        ({"retention": 0}, "retention=0 should be a number of seconds, up to a year"),
        ({"owner_bytes": 9}, "owner_bytes=9 should be at least reply_bytes, 16777216"),
    ],
)
def test_impossible_limits_are_refused_when_they_are_made(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ReplyLimits(**given)


def test_a_reply_that_is_too_large_is_not_kept(store: ReplyStore) -> None:
    replies = StoredReplies(store, ReplyLimits(reply_bytes=10))

    assert asyncio.run(replies.keep(b"x" * 11, Owner())) is None


def test_parts_of_a_reply_are_read_without_the_rest(store: ReplyStore) -> None:
    store.add("id", b"0123456789", Owner(tool="report"), ReplyLimits())

    found = store.get("id", "", slice(2, 4), slice(8, None))

    assert found == ("report", b"2389")


def test_a_session_s_replies_are_removed_with_it_and_others_stay(store: ReplyStore) -> None:
    replies = StoredReplies(store, ReplyLimits())
    ada, bob = Caller(replies, "ada"), Caller(replies, "bob")
    ada.keep(b"[]")
    bob.keep(b"[]")

    asyncio.run(replies.forget_session("session of ada"))

    assert (ada.left, bob.left) == ([], [b"[]"])


def test_removing_nobody_s_session_removes_nothing(store: ReplyStore) -> None:
    replies = StoredReplies(store, ReplyLimits())
    uri = asyncio.run(replies.keep(b"[]", Owner()))
    assert uri is not None

    asyncio.run(replies.forget_session(""))

    assert asyncio.run(replies.find(uri.removeprefix(PREFIX), "")) is not None


def test_an_odd_id_is_unknown(store: ReplyStore) -> None:
    replies = StoredReplies(store, ReplyLimits())
    for id in ("", "x" * 100_000, "a\0b", "é\ud800", "'; --"):
        assert asyncio.run(replies.find(id, "")) is None


def test_the_workers_file_is_private_and_what_expired_is_gone_from_it(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    now = [0.0]
    store = SQLiteReplies(str(path), clock=lambda: now[0])
    body = b'"' + b"a secret text " * 10_000 + b'"'
    store.add("id", body, Owner(), ReplyLimits())
    modes = {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}

    now[0] = 3601.0
    store.remove_expired()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = connection.execute("SELECT count(*) FROM bodies").fetchone()

    assert modes == {0o600}
    assert rows == (0,)
    assert b"a secret text" not in path.read_bytes()
    store.close()


def test_the_thread_that_removes_expired_replies_ends_with_them() -> None:
    before = set(threading.enumerate())
    replies = StoredReplies(SQLiteReplies(), ReplyLimits())
    asyncio.run(replies.keep(b"[]", Owner()))
    [thread] = set(threading.enumerate()) - before

    del replies
    gc.collect()
    thread.join(60)

    assert not thread.is_alive()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_thousand_callers_stay_within_the_limits_and_in_little_memory() -> None:
    done = subprocess.run(
        [sys.executable, MANY_CALLERS],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )

    found = json.loads(done.stdout)

    assert found["sent"] * found["size"] > 300_000_000
    assert found["readable"] * found["size"] <= 64 * 1024 * 1024
    assert found["readable"] > 1_500
    assert found["memory"] < 60 * 1024 * 1024
