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
from answerback.state.mailbox import Mailbox, SessionRows
from answerback.state.maintenance import check_state, rekey
from answerback.state.shared import Members, SharedState

FAR = 2.0**33


@pytest.fixture
def shared(state_url: str) -> Iterator[SharedState]:
    make_tables(state_url)
    shared = SharedState(state_url, (SECRET,))
    yield shared
    shared.close()


def test_the_number_of_a_process_is_not_given_again_for_a_day(shared: SharedState) -> None:
    first, second, third, fourth = (Members(shared.database, "talks") for _ in range(4))
    numbers = [first.join(), second.join()]
    first.leave()
    numbers.append(third.join())
    shared.database.rows(
        "UPDATE answerback.processes SET seen = seen - 86401 WHERE number = %s", numbers[0]
    )

    again = fourth.join()

    assert len(set(numbers)) == 3
    assert again == numbers[0]


def test_a_process_has_one_row_whoever_asks_for_the_others(shared: SharedState) -> None:
    members, other = shared.members("talks"), Members(shared.database, "talks")
    number, others = members.join(), other.join()
    seen = "SELECT seen FROM answerback.processes WHERE number = %s"

    living = members.beat()
    [[first]] = shared.database.rows(seen, number)
    again = members.beat()
    [[second]] = shared.database.rows(seen, number)
    other.leave()
    at_once = members.beat(at_once=True)

    assert living == again == {number, others}
    assert first == second
    assert at_once == {number}
    assert members.join() == number


def test_after_an_outage_the_processes_that_missed_their_heartbeat_still_count(
    shared: SharedState, postgres: Postgres, state_url: str
) -> None:
    members, other = shared.members("talks"), Members(shared.database, "talks")
    both = {members.join(), other.join()}
    postgres.pause()
    try:
        with pytest.raises(Unavailable):
            members.beat(at_once=True)
    finally:
        postgres.resume()
    with psycopg.connect(state_url) as connection:
        connection.execute("UPDATE answerback.processes SET seen = seen - 60")

    wait_until(lambda: bool(beats(members)))
    assert beats(members) == both


def beats(members: Members) -> frozenset[int]:
    try:
        return members.beat(at_once=True)
    except Unavailable:
        return frozenset()


def test_a_message_is_taken_once_although_the_reply_of_the_database_was_lost(
    shared: SharedState, postgres: Postgres, state_url: str
) -> None:
    proxy = Proxy([postgres.port])
    receiving = SharedState(state_url.replace(f":{postgres.port}/", f":{proxy.port}/"), (SECRET,))
    number = receiving.members("talks").join()
    shared.members("talks").join()
    Mailbox(shared, "talks").put(b"an answer", number)
    receiver = Mailbox(receiving, "talks")
    taken: list[bytes] = []

    def is_taken() -> bool:
        try:
            taken.extend(receiver.take())
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


def test_sessions_are_sealed_anew_and_their_secret_can_go(
    shared: SharedState, state_url: str
) -> None:
    SessionRows(shared, "talks").change(b"one", lambda before: b"a state")
    SessionRows(shared, "talks").end(b"two", FAR)
    new = b"the secret that takes its place, as long"

    before = check_state(state_url, [new, SECRET], processes=1).lines
    rekey(state_url, [new, SECRET])
    after = check_state(state_url, [new, SECRET], processes=1).lines

    assert not before[-1].endswith("can go")
    assert after[-1].endswith("has sealed 0 records and can go")
    rotated = SharedState(state_url, (new,))
    _, found = SessionRows(rotated, "talks").changed()
    rotated.close()
    assert {row.nonce: row.state for row in found} == {b"one": b"a state", b"two": None}


def test_expired_sessions_are_removed(shared: SharedState) -> None:
    rows = SessionRows(shared, "talks")
    rows.end(b"old", 1.0)
    rows.end(b"new", FAR)

    rows.remove_expired()

    assert [row.nonce for row in rows.changed()[1]] == [b"new"]
