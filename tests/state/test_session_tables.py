"""The tables behind sessions on several hosts: numbers of processes, and changes of sessions."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.fuzz.stdio_client import wait_until
from tests.state.postgres import Postgres
from tests.state.stores import SECRET, make_tables
from tests.state.tcp_proxy import Proxy

from answerback.errors import Unavailable
from answerback.state.homes import Homes, Mailbox
from answerback.state.kept_changes import SessionRows
from answerback.state.shared import SharedState

FAR = 2.0**33


@pytest.fixture
def shared(state_url: str) -> Iterator[SharedState]:
    make_tables(state_url)
    shared = SharedState(state_url, (SECRET,))
    yield shared
    shared.close()


def test_the_number_of_a_process_is_not_given_again_for_a_day(shared: SharedState) -> None:
    homes = Homes(shared.database, "talks")
    first, second = homes.take(), homes.take()
    homes.leave(first)
    third = homes.take()
    shared.database.rows("UPDATE answerback.homes SET seen = seen - 86401 WHERE number = %s", first)

    again = homes.take()

    assert len({first, second, third}) == 3
    assert again == first


def test_a_message_is_taken_once_although_the_reply_of_the_database_was_lost(
    shared: SharedState, postgres: Postgres, state_url: str
) -> None:
    homes, sender = Homes(shared.database, "talks"), Mailbox(shared, "talks")
    number, other = homes.take(), homes.take()
    sender.put(b"an answer", other, number, 60)
    proxy = Proxy([postgres.port])
    receiving = SharedState(state_url.replace(f":{postgres.port}/", f":{proxy.port}/"), (SECRET,))
    receiver = Mailbox(receiving, "talks")
    taken: list[bytes] = []

    def is_taken() -> bool:
        try:
            taken.extend(receiver.take(number))
        except Unavailable:
            return False
        return True

    proxy.lose_reply(b"answerback.bus")
    assert not is_taken()
    assert proxy.lost.is_set()
    wait_until(is_taken)
    wait_until(is_taken)
    receiving.close()
    proxy.close()

    assert taken == [b"an answer"]
    assert shared.database.rows("SELECT count(*) FROM answerback.bus") == [(0,)]


def test_a_change_that_is_committed_after_a_later_one_is_still_found(
    shared: SharedState, state_url: str
) -> None:
    rows = SessionRows(shared, "talks")
    with psycopg.connect(state_url) as slow:
        slow.execute(
            "INSERT INTO answerback.sessions (app, nonce, expires, has_ended)"
            " VALUES ('talks', 'slow', %s, true)",
            (FAR,),
        )
        rows.end(b"quick", FAR)
        _, before = rows.changed()
        slow.commit()

    _, after = rows.changed()

    assert [row.nonce for row in before] == [b"quick"]
    assert b"slow" in {row.nonce for row in after}


def test_an_unchanged_session_is_read_only_once(shared: SharedState) -> None:
    rows = SessionRows(shared, "talks")
    rows.end(b"ended", FAR)
    rows.changed()

    _, found = rows.changed()

    assert found == []


def test_an_ended_session_cannot_be_changed_any_more(shared: SharedState) -> None:
    rows = SessionRows(shared, "talks")
    rows.change(b"one", lambda before: b"a state")
    rows.end(b"one", FAR)
    rows.change(b"one", lambda before: b"another state")

    _, [found] = rows.changed()

    assert found.has_ended
    assert found.state is None
    assert shared.database.rows("SELECT state FROM answerback.sessions") == [(None,)]


def test_changes_of_a_session_build_on_each_other_and_are_unreadable_in_the_database(
    shared: SharedState,
) -> None:
    rows = SessionRows(shared, "talks")
    rows.change(b"one", lambda before: b"private")
    rows.change(b"one", lambda before: (before or b"") + b" twice")

    _, [found] = rows.changed()
    [[kept]] = shared.database.rows("SELECT state FROM answerback.sessions")

    assert found.state == b"private twice"
    assert b"private" not in kept


def test_expired_sessions_are_removed(shared: SharedState) -> None:
    rows = SessionRows(shared, "talks")
    rows.end(b"old", 1.0)
    rows.end(b"new", FAR)

    rows.remove_expired()

    assert [row.nonce for row in rows.changed()[1]] == [b"new"]
