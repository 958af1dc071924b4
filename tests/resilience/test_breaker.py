"""Circuit breakers: what they count, when they open, and how one probe closes them."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from tests.resilience.manual_clock import ManualClock
from tests.serving import runtime_of

from answerback import App, Context, Forbidden, NotFound, RateLimited, Reply, ToolError, Unavailable
from answerback.resilience import Breaker, Retry


def call(app: App, name: str, **arguments: Any) -> Reply[Any]:
    return asyncio.run(app.call(name, **arguments))


def code_of(reply: Reply[Any]) -> str:
    return "" if reply.error is None else reply.error.code


class Service:
    """A service that tests switch off and on; it counts its requests."""

    def __init__(self) -> None:
        self.error: BaseException | None = ConnectionResetError()
        self.requests = 0

    def ask(self) -> str:
        self.requests += 1
        if self.error is not None:
            raise self.error
        return "ok"


def app_of(service: Service, breaker: Breaker) -> App:
    app = App("app")

    @app.tool(breaker=breaker)
    def ask() -> str:
        return service.ask()

    @app.tool(breaker=breaker)
    async def ask_async() -> str:
        return service.ask()

    return app


def test_it_opens_after_three_failures_and_says_when_to_come_back() -> None:
    service, clock = Service(), ManualClock()
    app = app_of(service, Breaker("opens", clock=clock))

    for _ in range(3):
        call(app, "ask")
    clock.time += 10
    reply = call(app, "ask")

    assert service.requests == 3
    assert reply.error is not None
    assert reply.error.code == "UNAVAILABLE"
    assert reply.error.message == "Service temporarily unavailable"
    assert reply.error.retryable is True
    assert reply.error.details == {"retry_after": 20}
    assert reply.error.hint == "try again in 20 seconds"


def test_tools_share_the_breaker_of_a_service() -> None:
    service, clock = Service(), ManualClock()
    app = App("app")
    app.tool(name="one", breaker=Breaker("shared", clock=clock))(service.ask)
    app.tool(name="two", breaker=Breaker("shared", clock=clock))(service.ask)

    for _ in range(3):
        call(app, "one")
    reply = call(app, "two")

    assert code_of(reply) == "UNAVAILABLE"
    assert service.requests == 3


def test_a_second_breaker_of_a_service_must_have_the_same_numbers() -> None:
    kept = Breaker("numbers", failures=3)

    with pytest.raises(ValueError, match="failures=3"):
        Breaker("numbers", failures=5)

    assert kept.state == "closed"


def test_a_success_begins_the_count_anew() -> None:
    service, clock = Service(), ManualClock()
    breaker = Breaker("anew", clock=clock)
    app = app_of(service, breaker)

    for error in (ConnectionResetError(), TimeoutError(), None, ConnectionResetError()):
        service.error = error
        call(app, "ask")

    assert breaker.state == "closed"


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("no"),
        NotFound("no such city"),
        RateLimited("too many"),
        ToolError("refused"),
        KeyError("a bug"),
    ],
)
def test_refusals_and_bugs_of_the_tool_are_not_counted(error: Exception) -> None:
    service, clock = Service(), ManualClock()
    service.error = error
    breaker = Breaker("refusals", clock=clock)
    app = app_of(service, breaker)

    for _ in range(5):
        call(app, "ask")

    assert breaker.state == "closed"
    assert service.requests == 5


def test_bad_arguments_and_questions_are_not_counted() -> None:
    clock = ManualClock()
    breaker = Breaker("questions", failures=1, clock=clock)
    app = App("app")

    @app.tool(breaker=breaker)
    async def ask(n: int, ctx: Context) -> str:
        return await ctx.elicit("Which city?", str)

    bad = call(app, "ask", n="many")
    asked = call(app, "ask", n=1)

    assert (code_of(bad), code_of(asked)) == ("INVALID_ARGUMENTS", "INPUT_REQUIRED")
    assert breaker.state == "closed"


def test_exceptions_of_a_library_can_be_counted() -> None:
    class OperationalError(Exception):
        pass

    service, clock = Service(), ManualClock()
    service.error = OperationalError()
    breaker = Breaker("database", failures=1, counts=OperationalError, clock=clock)
    app = app_of(service, breaker)

    call(app, "ask")

    assert breaker.state == "open"


def test_a_call_with_three_failed_attempts_counts_once() -> None:
    service, clock = Service(), ManualClock()
    breaker = Breaker("once", failures=2, clock=clock)
    app = App("app")
    app.tool(breaker=breaker, retry=Retry(clock=clock), idempotent=True)(service.ask)

    call(app, "ask")

    assert service.requests == 3
    assert breaker.state == "closed"


def test_one_probe_closes_it_again(caplog: pytest.LogCaptureFixture) -> None:
    service, clock = Service(), ManualClock()
    breaker = Breaker("probe", reset=30, clock=clock)
    app = app_of(service, breaker)
    for _ in range(3):
        call(app, "ask")

    clock.time += 30
    half_open = breaker.state
    service.error = None
    with caplog.at_level(logging.INFO, "answerback"):
        reply = call(app, "ask")

    assert half_open == "half-open"
    assert reply.data == "ok"
    assert breaker.state == "closed"
    assert "breaker 'probe' is closed: the service is responding again" in caplog.text


def test_a_failed_probe_keeps_it_open() -> None:
    service, clock = Service(), ManualClock()
    breaker = Breaker("failed probe", reset=30, clock=clock)
    app = app_of(service, breaker)
    for _ in range(3):
        call(app, "ask")

    clock.time += 30
    call(app, "ask")
    call(app, "ask")

    assert service.requests == 4
    assert breaker.state == "open"


def test_a_probe_that_was_refused_lets_the_next_call_be_the_probe() -> None:
    service, clock = Service(), ManualClock()
    breaker = Breaker("refused probe", reset=30, clock=clock)
    app = app_of(service, breaker)
    for _ in range(3):
        call(app, "ask")

    clock.time += 30
    service.error = Forbidden("not you")
    refused = call(app, "ask")
    service.error = None
    reply = call(app, "ask")

    assert code_of(refused) == "FORBIDDEN"
    assert reply.ok


def test_of_many_threads_one_makes_the_probe() -> None:
    clock = ManualClock()
    breaker = Breaker("threads", failures=1, reset=30, clock=clock)
    runs: list[int] = []
    refused: list[int] = []
    start = threading.Barrier(20)
    finish = threading.Event()

    def service() -> str:
        runs.append(1)
        finish.wait(60)
        return "ok"

    def work() -> None:
        start.wait(60)
        try:
            breaker.call(service)
        except Unavailable:
            refused.append(1)
            if len(refused) == 19:
                finish.set()

    with pytest.raises(ConnectionError):
        breaker.call(Service().ask)
    clock.time += 30
    threads = [threading.Thread(target=work) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)

    assert (len(runs), len(refused)) == (1, 19)
    assert breaker.state == "closed"


async def probe_with_tasks(breaker: Breaker) -> tuple[int, int]:
    finish = asyncio.Event()
    runs: list[int] = []

    async def service() -> str:
        runs.append(1)
        await asyncio.wait_for(finish.wait(), 60)
        return "ok"

    async def release() -> None:
        finish.set()

    tasks = [asyncio.ensure_future(breaker.call(service)) for _ in range(20)]
    await asyncio.sleep(0)
    await release()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    return len(runs), sum(isinstance(each, Unavailable) for each in results)


def test_of_many_tasks_one_makes_the_probe() -> None:
    clock = ManualClock()
    breaker = Breaker("tasks", failures=1, reset=30, clock=clock)
    with pytest.raises(ConnectionError):
        breaker.call(Service().ask)
    clock.time += 30

    runs, refused = asyncio.run(probe_with_tasks(breaker))

    assert (runs, refused) == (1, 19)
    assert breaker.state == "closed"


def test_a_probe_that_never_ends_is_given_up() -> None:
    clock = ManualClock()
    breaker = Breaker("hanging probe", failures=1, reset=30, clock=clock)
    with pytest.raises(ConnectionError):
        breaker.call(Service().ask)
    clock.time += 30
    breaker.enter()

    clock.time += 29
    with pytest.raises(Unavailable):
        breaker.enter()
    clock.time += 1
    breaker.enter()

    assert breaker.state == "open"


def test_the_result_of_an_older_call_does_not_close_it() -> None:
    clock = ManualClock()
    breaker = Breaker("older", failures=1, clock=clock)
    older, newer = breaker.enter(), breaker.enter()

    breaker.leave(newer, True)
    breaker.leave(older, False)

    assert breaker.state == "open"


def test_health_shows_the_breakers_and_stays_ready() -> None:
    service, clock = Service(), ManualClock()
    app = app_of(service, Breaker("health", clock=clock))
    for _ in range(3):
        call(app, "ask")

    health = runtime_of(app).health()["breakers"]()

    assert health is not None
    assert health.ready
    assert health.details == {"health": "open", "trips": 1}
