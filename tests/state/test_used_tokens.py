"""A token that can be used once is accepted by one of the hosts that share a database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.state.stores import SECRET, make_tables
from tests.tasks.store_clock import NOW, StoreClock

from answerback.state.shared import SharedState, UsedRows


@pytest.fixture
def hosts(state_url: str) -> Iterator[list[SharedState]]:
    make_tables(state_url)
    made = [SharedState(state_url, [SECRET]) for _ in range(4)]
    yield made
    for each in made:
        each.close()


def test_of_hosts_that_ask_at_once_one_accepts_a_token(hosts: list[SharedState]) -> None:
    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            token = b"token %d" % number
            asked = [threads.submit(UsedRows(each).add, token, 2**33) for each in hosts * 2]
            assert [each.result() for each in asked].count(True) == 1


def test_tokens_are_forgotten_a_day_after_they_expired(
    hosts: list[SharedState], state_url: str
) -> None:
    clock, used = StoreClock(), UsedRows(hosts[0])
    clock.url = state_url
    clock.set(NOW)
    used.add(b"old", int(NOW) + 10)

    clock.set(NOW + 86_420)
    used.add(b"new", int(NOW) + 86_500)

    with psycopg.connect(state_url) as connection:
        assert connection.execute("SELECT count(*) FROM answerback.used_tokens").fetchone() == (1,)
