"""Breakers that several hosts share: each SharedState stands for a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.fuzz.stdio_client import wait_until
from tests.resilience.manual_clock import ManualClock
from tests.state.stores import SECRET, make_tables
from tests.tasks.store_clock import NOW, StoreClock

from answerback.resilience import Breaker, BreakerStore, shared_breakers
from answerback.resilience.breaker import ServiceState, State
from answerback.resilience.shared_breakers import SharedBreakers
from answerback.state.shared import SharedState

NOWHERE = "postgresql://127.0.0.1:1/nowhere"


class Process:
    """A process with the breakers of two services, which open after one failure."""

    def __init__(self, url: str, listen: str | None) -> None:
        self.clock = ManualClock()
        self.bank = self._breaker("bank", 60.0)
        self.post = self._breaker("post", 3600.0)
        self.state = SharedState(url, [SECRET], listen)
        breakers = SharedBreakers(self.state, "shop")
        breakers.share(self.bank)
        breakers.share(self.post)
        self.state.add(breakers)
        self.state.start()

    def _breaker(self, service: str, reset: float) -> Breaker:
        state = ServiceState(1, reset, self.clock.now)
        return Breaker(service, failures=1, reset=reset, store=state)


Start = Callable[..., Process]


@pytest.fixture
def start(state_url: str) -> Iterator[Start]:
    make_tables(state_url)
    started: list[Process] = []

    def begin(listen: str | None = None) -> Process:
        started.append(Process(state_url, listen))
        return started[-1]

    yield begin
    for each in started:
        each.state.close()


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_breakers, "_POLL", 3600.0)


def fail(breaker: Breaker) -> None:
    breaker.leave(breaker.enter(), True)


@pytest.mark.usefixtures("no_polling")
def test_a_breaker_that_opens_in_one_process_opens_in_the_others_by_a_notice(start: Start) -> None:
    one, two, three = start(), start(), start()

    fail(one.post)

    wait_until(lambda: two.post.state == three.post.state == "open")
    assert 3500 < two.post.store.seconds_left() <= 3600
    assert two.bank.state == "closed"


def test_without_notices_a_breaker_opens_in_the_others_by_polling(start: Start) -> None:
    one, two = start(NOWHERE), start(NOWHERE)

    fail(one.post)
    wait_until(lambda: two.post.state == "open")

    assert two.bank.state == "closed"


@pytest.mark.usefixtures("no_polling")
def test_a_probe_that_succeeds_in_one_process_closes_the_breaker_in_all(start: Start) -> None:
    one, two = start(), start()
    fail(two.post)
    wait_until(lambda: one.post.state == "open")

    one.clock.time += 3600
    one.post.leave(one.post.enter(), False)

    wait_until(lambda: two.post.state == "closed")
    assert one.post.state == "closed"


def test_a_process_that_starts_later_finds_the_open_breakers_whose_time_is_not_over(
    start: Start, state_url: str
) -> None:
    time = StoreClock()
    one, two = start(), start()
    time.url = state_url
    time.set(NOW)
    fail(one.bank)
    fail(one.post)
    wait_until(lambda: two.bank.state == two.post.state == "open")

    time.set(NOW + 100)
    later = start()

    wait_until(lambda: later.post.state == "open")
    assert later.bank.state == "closed"


@pytest.mark.usefixtures("no_polling")
def test_a_state_that_starts_again_sends_and_follows_breakers_again(start: Start) -> None:
    one, two = start(), start()
    one.state.close()

    one.state.start()
    fail(one.post)
    fail(two.bank)

    wait_until(lambda: two.post.state == one.bank.state == "open")
    assert (one.post.state, two.bank.state) == ("open", "open")


def test_a_store_of_the_author_is_kept(start: Start) -> None:
    class Always:
        state: State = "closed"
        trips = 0

        def enter(self) -> int:
            return 1

        def leave(self, ticket: int, failed: bool | None) -> bool:
            return False

        def seconds_left(self) -> float:
            return 0.0

    store: BreakerStore = Always()
    breaker = Breaker("mine", store=store)
    breakers = SharedBreakers(start().state, "shop")

    breakers.share(breaker)

    assert breaker.store is store
