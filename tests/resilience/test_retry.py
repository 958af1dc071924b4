"""Retries: which failures are tried again, how long they wait, and when they stop."""

from __future__ import annotations

import asyncio
import threading
import urllib.error
from email.message import Message
from typing import Any

import pytest
from tests.loop_clock import advance_clock
from tests.resilience.manual_clock import ManualClock

from answerback import (
    App,
    InvalidInput,
    RateLimited,
    Reply,
    TimedOut,
    ToolError,
    Unavailable,
    failure,
    success,
)
from answerback.resilience import Retry


def call(app: App, name: str = "fetch", **arguments: Any) -> Reply[Any]:
    return asyncio.run(app.call(name, **arguments))


def test_a_number_of_seconds_is_the_wait_after_each_attempt() -> None:
    clock = ManualClock()
    errors: list[BaseException] = [ConnectionError(), ConnectionError()]
    app, runs = failing_app(errors, Retry(wait=0.5, clock=clock), idempotent=True)

    assert call(app).data == "sunny"
    assert len(runs) == 3
    assert clock.waits == [0.5, 0.5]


def failing_app(errors: list[BaseException], retry: Retry, **options: Any) -> tuple[App, list[int]]:
    """An app whose tool raises *errors*, one at each run, and then succeeds."""
    app = App("app")
    runs: list[int] = []
    left = list(errors)

    @app.tool(retry=retry, **options)
    def fetch() -> str:
        runs.append(len(runs))
        if left:
            raise left.pop(0)
        return "sunny"

    return app, runs


def test_a_connection_error_is_tried_again_until_it_succeeds() -> None:
    clock = ManualClock()
    errors: list[BaseException] = [ConnectionResetError(), ConnectionResetError()]
    app, runs = failing_app(errors, Retry(attempts=3, clock=clock), idempotent=True)

    reply = call(app)

    assert reply.data == "sunny"
    assert len(runs) == 3


def test_the_waits_are_those_of_the_seed_and_there_is_none_after_the_last_attempt() -> None:
    clock = ManualClock()

    @Retry(attempts=3, on=RuntimeError, clock=clock)
    def operation() -> None:
        raise RuntimeError("down")

    with pytest.raises(RuntimeError, match="down"):
        operation()

    assert len(clock.waits) == 2
    assert 1 <= clock.waits[0] < 2
    assert 2 <= clock.waits[1] < 3


def test_the_last_error_is_raised_by_an_async_function_too() -> None:
    clock = ManualClock()
    errors = [ConnectionResetError("first"), ConnectionResetError("last")]

    @Retry(attempts=2, clock=clock)
    async def operation() -> None:
        raise errors.pop(0)

    with pytest.raises(ConnectionResetError, match="last"):
        asyncio.run(operation())

    assert len(clock.waits) == 1


def test_a_decorated_function_keeps_its_name_and_can_be_a_tool() -> None:
    app = App("app")
    clock = ManualClock()
    errors = [ConnectionResetError()]

    @app.tool
    @Retry(clock=clock)
    async def fetch(city: str) -> str:
        if errors:
            raise errors.pop()
        return city

    reply = call(app, city="Oslo")

    assert reply.data == "Oslo"
    assert len(clock.waits) == 1


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("no such city"),
        ToolError("refused"),
        Unavailable("down for good", retryable=False),
        ValueError("a bug"),
        FileNotFoundError("settings.toml"),
    ],
)
def test_an_error_that_would_come_again_is_not_tried_again(error: Exception) -> None:
    app, runs = failing_app([error], Retry(clock=ManualClock()), idempotent=True)

    reply = call(app)

    assert not reply.ok
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (ConnectionResetError(), 1),
        (TimedOut("the service took too long"), 1),
        (Unavailable("down"), 1),
        (ConnectionRefusedError(111, "refused"), 2),
        (urllib.error.URLError(ConnectionRefusedError(111, "refused")), 2),
        (RateLimited("later"), 2),
    ],
)
def test_a_tool_that_is_not_idempotent_is_repeated_only_if_nothing_was_done(
    error: Exception, count: int
) -> None:
    app, runs = failing_app([error], Retry(clock=ManualClock()))

    call(app)

    assert len(runs) == count


def test_a_read_only_tool_is_repeated() -> None:
    app, runs = failing_app([ConnectionResetError()], Retry(clock=ManualClock()), read_only=True)

    reply = call(app)

    assert reply.ok
    assert len(runs) == 2


def test_a_failed_reply_that_the_tool_returns_is_tried_again() -> None:
    app = App("app")
    replies = [failure("busy", code="UNAVAILABLE"), success("done")]

    @app.tool(retry=Retry(clock=ManualClock()), idempotent=True)
    def fetch() -> Reply[Any]:
        return replies.pop(0)

    reply = call(app)

    assert reply.ok


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("later", retry_after=7),
        Unavailable("later", details={"retry_after": 7}),
        RateLimited("later", retry_after=7.0),
    ],
)
def test_the_service_decides_how_long_to_wait(error: Exception) -> None:
    clock = ManualClock()
    app, _ = failing_app([error], Retry(clock=clock), idempotent=True)

    call(app)

    assert clock.waits == [7.0]


def test_the_header_retry_after_of_a_librarys_exception_is_honoured() -> None:
    clock = ManualClock()
    headers = Message()
    headers["Retry-After"] = "9"
    error = urllib.error.HTTPError("http://localhost", 503, "Unavailable", headers, None)
    app, _ = failing_app([error], Retry(clock=clock), idempotent=True)

    reply = call(app)

    assert reply.ok
    assert clock.waits == [9.0]


def test_a_service_that_asks_for_too_long_a_wait_is_not_tried_again() -> None:
    clock = ManualClock()
    errors: list[BaseException] = [Unavailable("tomorrow", retry_after=86_400)]
    app, runs = failing_app(errors, Retry(clock=clock), idempotent=True)

    reply = call(app)

    assert reply.error is not None
    assert reply.error.details == {"retry_after": 86_400}
    assert len(runs) == 1
    assert clock.waits == []


def test_no_attempt_begins_after_the_deadline() -> None:
    clock = ManualClock()
    errors: list[BaseException] = [ConnectionResetError() for _ in range(9)]
    retry = Retry(attempts=10, wait=lambda attempt: 4.0, deadline=10.0, clock=clock)
    app, runs = failing_app(errors, retry, idempotent=True)

    reply = call(app)

    assert not reply.ok
    assert len(runs) == 3
    assert clock.waits == [4.0, 4.0]


def test_each_attempt_of_an_async_tool_has_its_own_time_out() -> None:
    app = App("app")
    runs: list[int] = []

    @app.tool(timeout=0.05, retry=Retry(clock=ManualClock()), idempotent=True)
    async def fetch() -> str:
        runs.append(1)
        if len(runs) < 3:
            await asyncio.Event().wait()
        return "sunny"

    reply = call(app)

    assert reply.data == "sunny"
    assert len(runs) == 3


def test_a_plain_function_that_timed_out_is_not_run_a_second_time() -> None:
    """Contract: its thread goes on, so that two would run at once."""
    app = App("app")
    runs: list[int] = []
    begun, release = threading.Event(), threading.Event()

    @app.tool(timeout=60, retry=Retry(clock=ManualClock()), idempotent=True)
    def fetch() -> str:
        runs.append(1)
        begun.set()
        release.wait(120)
        return "sunny"

    async def call_until_it_times_out() -> Reply[Any]:
        calling = asyncio.create_task(app.call("fetch"))
        assert await asyncio.to_thread(begun.wait, 60)
        advance_clock(120)
        return await calling

    try:
        reply = asyncio.run(call_until_it_times_out())
    finally:
        release.set()

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert len(runs) == 1


async def cancel_while_waiting() -> int:
    app = App("app")
    runs: list[int] = []
    waiting = asyncio.Event()

    def long_wait(attempt: int) -> float:
        waiting.set()
        return 600.0

    @app.tool(retry=Retry(wait=long_wait), idempotent=True)
    async def fetch() -> str:
        runs.append(1)
        raise ConnectionResetError

    task = asyncio.ensure_future(app.call("fetch"))
    await asyncio.wait_for(waiting.wait(), 60)
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()
    return len(runs)


def test_a_cancelled_call_does_not_wait_for_its_next_attempt() -> None:
    assert asyncio.run(cancel_while_waiting()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retry": 3}, "retry=3 should be a Retry"),
        ({"breaker": "weather-api"}, "should be a Breaker"),
        ({"limit": "10/s"}, "should be a Limit"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_at_registration(
    options: dict[str, Any], words: str
) -> None:
    app = App("app")

    with pytest.raises(TypeError, match=words):
        app.tool(**options)(lambda: None)
