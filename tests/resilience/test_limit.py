"""Limits: by rate and by calls at a time, for all and for each user; memory stays bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.resilience.manual_clock import ManualClock

from answerback import App, Context, RateLimited, Reply
from answerback.core.authentication import User
from answerback.resilience import Limit
from answerback.resilience.limit import Buckets
from answerback.testing import TestContext


def app_with(limit: Any) -> App:
    app = App("app")

    @app.tool(limit=limit)
    def add(x: int) -> int:
        return x + 1

    return app


def call(app: App, **arguments: Any) -> Reply[Any]:
    return asyncio.run(app.call("add", x=1, **arguments))


def code_of(reply: Reply[Any]) -> str:
    return "" if reply.error is None else reply.error.code


def test_calls_over_the_rate_are_refused_and_told_when_to_come_back() -> None:
    clock = ManualClock()
    app = app_with(Limit("2/min", clock=clock))

    codes = [code_of(call(app)) for _ in range(2)]
    reply = call(app)

    assert codes == ["", ""]
    assert reply.error is not None
    assert reply.error.code == "RATE_LIMITED"
    assert reply.error.message == "Too many calls: the limit is 2/min"
    assert reply.error.details == {"limit": "2/min", "retry_after": 30}
    assert reply.error.hint == "try again in 30 seconds"


def test_who_comes_back_after_that_time_is_let_through() -> None:
    clock = ManualClock()
    app = app_with(Limit("2/min", clock=clock))
    for _ in range(3):
        call(app)

    clock.time += 30
    codes = [code_of(call(app)) for _ in range(2)]

    assert codes == ["", "RATE_LIMITED"]


def test_bad_arguments_do_not_use_the_limit() -> None:
    app = app_with(Limit("1/min", clock=ManualClock()))

    bad = asyncio.run(app.call("add", x="many"))
    good = call(app)

    assert (code_of(bad), code_of(good)) == ("INVALID_ARGUMENTS", "")


def test_each_user_has_a_limit_of_their_own() -> None:
    app = app_with(Limit("1/min", per="user", clock=ManualClock()))
    ann, bob = (User(subject=name, issuer="test") for name in ("ann", "bob"))

    codes = [code_of(call(app, ctx=TestContext(user=user))) for user in (ann, bob, ann, bob)]

    assert codes == ["", "", "RATE_LIMITED", "RATE_LIMITED"]


def test_a_function_may_decide_what_is_counted_together() -> None:
    def by_group(ctx: Context) -> str:
        group: str = ctx.user["group"]
        return group

    app = app_with(Limit("1/min", per=by_group, clock=ManualClock()))

    codes = [
        code_of(call(app, ctx=TestContext(user={"group": group}))) for group in ("a", "a", "b")
    ]

    assert codes == ["", "RATE_LIMITED", ""]


def test_a_limit_for_all_holds_beside_that_of_each_user() -> None:
    clock = ManualClock()
    everyone = Limit("2/min", clock=clock)
    app = app_with([Limit("1/min", per="user", clock=clock), everyone])
    users = [User(subject=str(n), issuer="test") for n in range(3)]

    codes = [code_of(call(app, ctx=TestContext(user=user))) for user in users]
    clock.time += 30
    again = code_of(call(app, ctx=TestContext(user=users[2])))

    assert codes == ["", "", "RATE_LIMITED"]
    # The refusal by the second limit did not use up the first one.
    assert again == ""


async def calls_at_a_time(app: App, count: int) -> list[Reply[Any]]:
    return await asyncio.gather(*(app.call("wait") for _ in range(count)))


def test_calls_over_the_concurrent_limit_are_refused_until_one_ends() -> None:
    app = App("app")
    limit = Limit(concurrent=2)

    @app.tool(limit=limit)
    async def wait() -> str:
        await asyncio.sleep(0)
        return "ok"

    replies = asyncio.run(calls_at_a_time(app, 3))
    later = asyncio.run(app.call("wait"))

    assert [code_of(each) for each in replies] == ["", "", "RATE_LIMITED"]
    assert later.ok


def test_a_failed_call_no_longer_counts_as_running() -> None:
    limit = Limit(concurrent=1)

    @limit
    def fail() -> None:
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            fail()

    assert limit._running == {}


def test_a_decorated_function_is_limited() -> None:
    @Limit("1/h", clock=ManualClock())
    def work() -> str:
        return "done"

    work()
    with pytest.raises(RateLimited) as refused:
        work()

    assert refused.value.details == {"limit": "1/h", "retry_after": 3600}


def test_a_plain_function_has_no_users_to_tell_apart() -> None:
    with pytest.raises(TypeError, match="per='user' needs a call"):
        Limit("1/s", per="user")(print)


def test_many_users_take_bounded_memory_and_an_active_one_is_not_forgotten() -> None:
    clock = ManualClock()
    buckets = Buckets(10, 3600, clock.now, max_keys=1000)
    refused_at = []

    for number in range(20_000):
        buckets.take(number)
        if number % 100 == 0 and buckets.take("busy") > 0:
            refused_at.append(number)

    assert len(buckets) <= 1000
    assert refused_at
    assert refused_at[0] == 1000


@pytest.mark.parametrize("rate", ["10", "0/s", "ten/s", "10/fortnight", "-1/s", ""])
def test_a_rate_that_cannot_be_read_is_refused(rate: str) -> None:
    with pytest.raises(ValueError, match="should be like"):
        Limit(rate)


@pytest.mark.parametrize(
    ("rate", "count", "seconds"),
    [("10/s", 10, 1), ("100/min", 100, 60), ("5/10s", 5, 10), ("2 / hour", 2, 3600)],
)
def test_a_rate_lets_its_number_of_calls_through_at_once(
    rate: str, count: int, seconds: int
) -> None:
    clock = ManualClock()
    limit = Limit(rate, clock=clock)

    for _ in range(count):
        limit.call(len, "")
    with pytest.raises(RateLimited):
        limit.call(len, "")
    clock.time += seconds
    for _ in range(count):
        limit.call(len, "")

    with pytest.raises(RateLimited):
        limit.call(len, "")


async def statuses_from(addresses: list[str]) -> list[int]:
    app = app_with(Limit("1/min", per="address", clock=ManualClock()))
    found = []
    for address in addresses:
        transport = httpx.ASGITransport(app.asgi(), client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            found.append((await client.post("/functions/add", json={"x": 1})).status_code)
    return found


@pytest.mark.parametrize(
    ("addresses", "statuses"),
    [
        (["10.0.0.1", "10.0.0.2", "10.0.0.1"], [200, 200, 429]),
        (["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"], [200, 429, 200]),
        (["::ffff:10.0.0.1", "::ffff:10.0.0.2", "10.0.0.1"], [200, 200, 429]),
        (["fe80::1%eth0", "fe80::2%eth0"], [200, 200]),
    ],
)
def test_the_addresses_of_one_ipv6_network_count_together(
    addresses: list[str], statuses: list[int]
) -> None:
    """A subscriber has 2**64 addresses, and could use each of them once."""
    found = asyncio.run(statuses_from(addresses))

    assert found == statuses


def test_clients_of_two_issuers_with_the_same_id_are_counted_apart() -> None:
    app = app_with(Limit("1/min", per="client", clock=ManualClock()))
    users = [User(subject="ann", issuer=issuer, client="cli") for issuer in ("one", "two", "one")]

    codes = [code_of(call(app, ctx=TestContext(user=user))) for user in users]

    assert codes == ["", "", "RATE_LIMITED"]
