"""Limits that several hosts share: each SharedState stands for a process with its own app."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import psycopg
import pytest
from tests.fuzz.stdio_client import wait_until
from tests.resilience.manual_clock import ManualClock
from tests.state.postgres import Postgres
from tests.state.stores import SECRET, make_tables
from tests.tasks.store_clock import NOW, StoreClock

from answerback import App
from answerback.calls.runtime import runtime_on_loop
from answerback.errors import RateLimited
from answerback.registry.declarations import registry_of
from answerback.resilience import Breaker, Limit
from answerback.resilience.shared_limits import SharedLimits
from answerback.server.shared_state import use_state
from answerback.state.shared import SharedState


class Host:
    """A process that serves an app with a limited tool `search`."""

    def __init__(self, url: str, **options: Any) -> None:
        self.app = App("shop")

        @self.app.tool(**options)
        def search() -> None:
            return

        @self.app.tool(limit=Limit("1000/s"))
        def other() -> None:
            return

        self.state = SharedState(url, [SECRET])
        use_state(runtime_on_loop(registry_of(self.app)), self.state)

    @property
    def limits(self) -> SharedLimits:
        [found] = [part for part in self.state.parts if isinstance(part, SharedLimits)]
        return found

    async def call(self) -> str:
        """Call the tool; return "passed", or the code of the error."""
        reply = await self.app.call("search")
        return "passed" if reply.error is None else reply.error.code

    def search(self) -> str:
        return asyncio.run(self.call())


Start = Callable[..., Host]


@pytest.fixture
def start(state_url: str) -> Iterator[Start]:
    make_tables(state_url)
    started: list[Host] = []

    def begin(**options: Any) -> Host:
        started.append(Host(state_url, **options))
        return started[-1]

    yield begin
    for each in started:
        each.state.close()


def meet(*hosts: Host) -> None:
    """Wait until each host knows how many there are."""
    for each in hosts:
        asyncio.run(each.app.call("other"))
    wait_until(lambda: all(each.limits.processes == len(hosts) for each in hosts))


def outcomes(hosts: list[Host], calls: int) -> Counter[str]:
    """Make so many calls at each host, all at once."""

    async def call_all() -> list[str]:
        return await asyncio.gather(*(each.call() for each in hosts * calls))

    return Counter(asyncio.run(call_all()))


def test_a_small_limit_is_exact_over_all_hosts(start: Start) -> None:
    hosts = [start(limit=Limit("3/h")) for _ in range(4)]

    found = outcomes(hosts, 10)

    assert found == {"passed": 3, "RATE_LIMITED": 37}


def test_a_large_limit_is_passed_in_full_by_one_busy_host(start: Start) -> None:
    host = start(limit=Limit("100/h"))

    found = outcomes([host], 150)

    assert found == {"passed": 100, "RATE_LIMITED": 50}


def test_a_large_limit_is_exact_over_all_hosts(start: Start, state_url: str) -> None:
    time = StoreClock()
    time.url = state_url
    time.set(NOW)
    hosts = [start(limit=Limit("400/h", clock=ManualClock())) for _ in range(4)]
    meet(*hosts)
    outcomes(hosts, 1)

    time.set(NOW + 7200)
    found = outcomes(hosts, 200)

    assert found == {"passed": 400, "RATE_LIMITED": 400}


def test_a_call_waits_for_a_paused_database_within_its_time_out(
    start: Start, postgres: Postgres
) -> None:
    host = start(limit=Limit("2/h"), timeout=5)
    meet(host)
    # Longer than the test may take: only the call's own time-out ends the wait.
    host.state.database._seconds = 3600

    postgres.pause()
    try:
        found = host.search()
    finally:
        postgres.resume()

    assert found == "passed"


def test_each_host_counts_its_part_while_the_database_is_away(
    start: Start, postgres: Postgres
) -> None:
    user = {"name": "ada"}
    hosts = [start(limit=Limit("4/h", per=lambda ctx: user["name"])) for _ in range(2)]
    meet(*hosts)

    postgres.pause()
    try:
        away = [outcomes([each], 3) for each in hosts]
    finally:
        postgres.resume()
    wait_until(lambda: not any(each.limits.is_away for each in hosts))
    # What was asked before may still take effect.
    user["name"] = "bob"
    back = outcomes(hosts, 10)

    assert away == [{"passed": 2, "RATE_LIMITED": 1}] * 2
    assert back["passed"] == 4


def test_waiting_for_the_database_does_not_block_the_event_loop(
    start: Start, postgres: Postgres
) -> None:
    host = start(limit=Limit("2/h"))
    meet(host)

    async def count_ticks() -> int:
        call = asyncio.create_task(host.call())
        ticks = 0
        while not call.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert await call == "passed"
        return ticks

    postgres.pause()
    try:
        ticks = asyncio.run(count_ticks())
    finally:
        postgres.resume()

    assert ticks > 20


def test_a_call_that_another_part_refuses_gives_its_token_back(start: Start) -> None:
    clock = ManualClock()
    breaker = Breaker("limits-bank", failures=1, reset=3600, clock=clock)
    host = start(limit=Limit("1/h"), breaker=breaker)
    breaker.leave(breaker.enter(), True)

    refused = host.search()
    wait_until(lambda: not host.limits._asked)
    clock.time += 3600

    assert refused == "UNAVAILABLE"
    assert [host.search(), host.search()] == ["passed", "RATE_LIMITED"]


def test_several_small_limits_of_a_tool_count_each_call_once(start: Start) -> None:
    hosts = [start(limit=[Limit("2/h"), Limit("3/h", per=lambda ctx: "ada")]) for _ in range(2)]

    found = [host.search() for host in hosts * 2]

    assert found == ["passed", "passed", "RATE_LIMITED", "RATE_LIMITED"]


def test_a_function_that_uses_the_limit_of_a_tool_is_counted_with_it(start: Start) -> None:
    limit = Limit("2/h")
    hosts = [start(limit=limit), start(limit=Limit("2/h"))]

    limit.call(len, "")
    found = [host.search() for host in hosts]

    assert found == ["passed", "RATE_LIMITED"]
    with pytest.raises(RateLimited):
        limit.call(len, "")


def test_a_key_without_a_name_fails_its_call_and_not_the_limit(start: Start) -> None:
    class Nameless:
        def __repr__(self) -> str:
            raise ValueError

    user: dict[str, Hashable] = {"name": Nameless()}
    host = start(limit=Limit("2/h", per=lambda ctx: user["name"]))

    failed = host.search()
    user["name"] = "ada"
    passed = host.search()

    assert (failed, passed) == ("TOOL_EXECUTION_ERROR", "passed")
    assert not host.limits.is_away


def test_the_users_of_a_limit_are_counted_apart_and_their_names_are_not_stored(
    start: Start, state_url: str
) -> None:
    user = {"name": "ada@example.com"}
    hosts = [start(limit=Limit("1/h", per=lambda ctx: user["name"])) for _ in range(2)]

    first = outcomes(hosts, 2)
    user["name"] = "bob@example.com"
    second = outcomes(hosts, 2)

    with psycopg.connect(state_url) as connection:
        rows = connection.execute("SELECT key FROM answerback.limits").fetchall()
    assert first == second == {"passed": 1, "RATE_LIMITED": 3}
    assert len(rows) >= 2
    assert "example" not in repr(rows)


def test_a_full_bucket_is_removed(start: Start, state_url: str) -> None:
    time = StoreClock()
    time.url = state_url
    time.set(NOW)
    host = start(limit=Limit("2/min"))
    host.search()

    def rows(seconds: float) -> object:
        time.set(NOW + seconds)
        host.limits.remove_full()
        with psycopg.connect(state_url) as connection:
            return connection.execute("SELECT count(*) FROM answerback.limits").fetchone()

    assert rows(29) == (1,)
    assert rows(31) == (0,)


def test_a_store_of_the_author_is_kept(start: Start, state_url: str) -> None:
    class Never:
        def take(self, key: Hashable) -> float:
            return 60.0

        def give_back(self, key: Hashable) -> None: ...

    host = start(limit=Limit("100/h", store=Never()))

    found = host.search()

    assert found == "RATE_LIMITED"


def test_a_closed_state_leaves_a_limit_to_its_process(start: Start) -> None:
    host = start(limit=Limit("2/h"))
    host.search()

    host.state.close()
    found = outcomes([host], 3)

    assert found == {"passed": 2, "RATE_LIMITED": 1}


def test_a_tool_that_is_registered_while_hosts_serve_is_counted_by_all(start: Start) -> None:
    hosts = [start(), start()]
    for host in hosts:

        @host.app.tool(limit=Limit("1/h"))
        def late() -> None:
            return

        included = App("more")
        host.app.include(included, prefix="more_")

        @included.tool(limit=Limit("1/h"))
        def later() -> None:
            return

    def codes(tool: str) -> list[str | None]:
        replies = [asyncio.run(host.app.call(tool)) for host in hosts]
        return [None if reply.error is None else reply.error.code for reply in replies]

    assert codes("late") == [None, "RATE_LIMITED"]
    assert codes("more_later") == [None, "RATE_LIMITED"]


def test_a_state_that_starts_again_shares_its_limits_again(start: Start) -> None:
    hosts = [start(limit=Limit("1/h")), start(limit=Limit("1/h"))]
    hosts[0].state.close()

    hosts[0].state.start()
    found = [host.search() for host in hosts]

    assert found == ["passed", "RATE_LIMITED"]
