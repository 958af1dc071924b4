"""Decorated functions of every kind, and stores that several machines share."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from tests.resilience.manual_clock import ManualClock
from tests.serving import handlers_of

from answerback import App, Limits, RateLimited, Unavailable
from answerback.calls.call import Call
from answerback.resilience import Breaker, Limit, Retry
from answerback.resilience.limit import Buckets


async def fetch_twice(errors: list[Exception]) -> str:
    if errors:
        raise errors.pop()
    return "sunny"


class Api:
    def __init__(self) -> None:
        self.errors: list[Exception] = [ConnectionResetError()]

    @Retry(wait=lambda attempt: 0.0)
    async def fetch(self) -> str:
        return await fetch_twice(self.errors)

    async def __call__(self) -> str:
        return await fetch_twice(self.errors)


def one_error() -> list[Exception]:
    return [ConnectionResetError()]


async def results_of_every_kind() -> list[str]:
    retry = Retry(wait=lambda attempt: 0.0)
    partial = functools.partial(fetch_twice, one_error())
    errors = one_error()
    return [
        await retry(fetch_twice)(one_error()),
        await retry(partial)(),
        await retry.call(lambda: fetch_twice(errors)),
        await retry(Api())(),
        await Api().fetch(),
    ]


def test_async_functions_partials_lambdas_objects_and_methods_are_tried_again() -> None:
    results = asyncio.run(results_of_every_kind())

    assert results == ["sunny"] * 5


async def failing() -> None:
    raise ConnectionResetError


async def call_by_lambda(breaker: Breaker) -> None:
    for _ in range(3):
        with pytest.raises(ConnectionResetError):
            await breaker.call(lambda: failing())


def test_a_breaker_counts_the_failure_of_a_coroutine_that_a_lambda_returned() -> None:
    breaker = Breaker("lambda", failures=3, clock=ManualClock())

    asyncio.run(call_by_lambda(breaker))

    assert breaker.state == "open"


async def running_before_the_await(limit: Limit) -> int:
    steps = limit.call(lambda: failing())
    running = len(limit._running)
    with pytest.raises(ConnectionResetError):
        await steps
    return running


def test_a_coroutine_uses_up_no_limit_until_it_is_awaited() -> None:
    running = asyncio.run(running_before_the_await(Limit(concurrent=1)))

    assert running == 0


class BrokenStore:
    """A store whose database is away."""

    state = "closed"
    trips = 0

    def enter(self) -> int | None:
        return 1

    def leave(self, ticket: int, failed: bool | None) -> bool:
        raise OSError("the database is away")

    def seconds_left(self) -> float:
        return 0.0

    def take(self, key: Hashable) -> float:
        raise OSError("the database is away")

    def give_back(self, key: Hashable) -> None:
        pass


def test_a_store_that_raises_leaves_no_call_counted_as_running(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limit = Limit(concurrent=1)
    counted = Limit("10/s", concurrent=1, store=BrokenStore())
    app = App("app")
    broken: Any = BrokenStore()

    @app.tool(limit=limit, breaker=Breaker("away", store=broken))
    def work() -> str:
        return "done"

    @app.tool(limit=counted)
    def counted_work() -> str:
        return "done"

    replies = [asyncio.run(app.call(name)) for name in ("work", "work", "counted_work")]

    assert [each.ok for each in replies] == [True, True, False]
    assert "the store of breaker 'away' raised" in caplog.text
    assert limit._running == counted._running == {}


def test_a_refused_key_is_not_forgotten_while_it_calls() -> None:
    clock = ManualClock()
    buckets = Buckets(1, 3600, clock.now, max_keys=100)
    buckets.take("attacker")

    passed = 0
    for number in range(1000):
        buckets.take(number)
        passed += buckets.take("attacker") == 0

    assert passed == 0


class SharedBuckets:
    """A store that two apps share, as two machines would share a database. It may be empty."""

    def __init__(self) -> None:
        self.keys: list[Hashable] = []

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, key: Hashable) -> float:
        if len(self.keys) >= 3:
            return 12.0
        self.keys.append(key)
        return 0.0

    def give_back(self, key: Hashable) -> None:
        self.keys.remove(key)


def limited_app(store: SharedBuckets) -> App:
    app = App("machine")

    @app.tool(limit=Limit("3/min", store=store))
    def work() -> str:
        return "done"

    return app


def test_two_apps_share_a_limit_by_its_store() -> None:
    store = SharedBuckets()
    one, two = limited_app(store), limited_app(store)

    replies = [asyncio.run(app.call("work")) for app in (one, two, one, two)]

    assert [each.ok for each in replies] == [True, True, True, False]
    error = replies[-1].error
    assert error is not None
    assert error.details == {"limit": "3/min", "retry_after": 12}


class FileStore:
    """The state of a breaker in a SQLite file, which several processes share."""

    def __init__(self, path: str, failures: int = 3) -> None:
        self._failures = failures
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("create table if not exists failed (n integer)")

    @property
    def _count(self) -> int:
        count: int = self._database.execute("select count(*) from failed").fetchone()[0]
        return count

    @property
    def state(self) -> Any:
        return "open" if self._count >= self._failures else "closed"

    @property
    def trips(self) -> int:
        return self._count // self._failures

    def enter(self) -> int | None:
        return None if self.state == "open" else 0

    def leave(self, ticket: int, failed: bool | None) -> bool:
        if failed:
            self._database.execute("insert into failed values (1)")
        elif failed is False:
            self._database.execute("delete from failed")
        return bool(failed) and self._count == self._failures

    def seconds_left(self) -> float:
        return 9.0


FAIL = """
import sys
from tests.resilience.test_decorators_and_stores import Breaker, FileStore
breaker = Breaker("of another process", store=FileStore(sys.argv[1]))
@breaker
def fail():
    raise ConnectionResetError
for _ in range(3):
    try:
        fail()
    except ConnectionResetError:
        pass
"""


def test_a_breaker_that_another_process_opened_is_open_here(tmp_path: Path) -> None:
    path = str(tmp_path / "breaker")
    breaker = Breaker("of this process", store=FileStore(path))

    subprocess.run([sys.executable, "-c", FAIL, path], check=True, timeout=30)
    with pytest.raises(Unavailable) as refused:
        breaker.call(dict)

    assert breaker.state == "open"
    assert refused.value.details == {"retry_after": 9}


async def storm(limit: Limit, breaker: Breaker) -> list[str]:
    """Ten thousand calls at once, of which every second is cancelled while it runs."""
    release = asyncio.Event()
    app = App("storm", limits=Limits(calls=20_000))

    @app.tool(limit=limit, breaker=breaker, retry=Retry(), idempotent=True)
    async def wait() -> str:
        await release.wait()
        return "done"

    handlers = handlers_of(app).tools

    async def one() -> str:
        reply: Any = await handlers(Call("wait", wire="http"))
        return reply.error.code if reply.error else "ok"

    tasks = [asyncio.ensure_future(one()) for _ in range(10_000)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.sleep(0)
    release.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    return ["cancelled" if isinstance(each, BaseException) else each for each in found]


def test_ten_thousand_calls_and_a_storm_of_cancellations_leave_nothing_behind() -> None:
    limit, breaker = Limit(concurrent=4000), Breaker("storm", failures=1)

    found = asyncio.run(storm(limit, breaker))

    counts = {each: found.count(each) for each in set(found)}
    assert sum(counts.values()) == 10_000
    assert counts["ok"] == 2000
    assert limit._running == {}
    assert breaker.state == "closed"


def test_a_limit_raises_for_a_function_without_an_app() -> None:
    @Limit("1/min", clock=ManualClock())
    def limited() -> str:
        return "done"

    limited()

    with pytest.raises(RateLimited):
        limited()
