"""CPU time per call and memory of libraries for retries, breakers and limits, beside ours."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import limits
import stamina
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter
from purgatory import AsyncCircuitBreakerFactory

from . import resilience
from .report import Chart, Figure, Found

CALLS, ROUNDS = 3_000, 7
USERS = 200_000
Function = Callable[[], Awaitable[int]]


def measure() -> Found:
    ours = {each.what: each.ratio for each in resilience.measure()}
    added = asyncio.run(_added())
    together = ours["Limit, Breaker and Retry together, passed, in µs"]
    rows: dict[str, list[float | None]] = {
        "Answerback: Retry": [ours["a passed Retry, in µs"]],
        "stamina": [added["stamina"]],
        "Answerback: Breaker": [ours["a passed Breaker, in µs"]],
        "purgatory": [added["purgatory"]],
        "Answerback: Limit": [ours["a passed Limit of each user, in µs"]],
        "limits": [added["limits"]],
        "Answerback: all three": [together],
        "stamina, purgatory and limits": [added["all"]],
    }
    through = asyncio.run(_through_a_half_open_breaker())
    return [
        Chart(
            name="policies",
            title="A passed retry, breaker or limit",
            unit="µs of CPU time that it adds to a call",
            columns=[""],
            rows=rows,
        ),
        Figure(
            "stamina, purgatory and limits together, times ours",
            added["all"] / together,
            1.5,
            False,
            f"{added['all']:.1f} against {together:.1f} µs",
        ),
        Figure(
            "calls of 20 that purgatory lets through when it half-opens",
            through,
            2,
            False,
            "ours lets one through",
        ),
        Figure(
            f"MB that limits keeps for {USERS:,} users",
            asyncio.run(_kept()),
            1,
            False,
            "ours keeps at most 100,000 users",
        ),
    ]


async def _plain() -> int:
    return 10


async def _added() -> dict[str, float]:
    """The CPU time in µs that each library adds to a call of an async function."""
    breakers = AsyncCircuitBreakerFactory()
    limiter = FixedWindowRateLimiter(MemoryStorage())
    rate = limits.RateLimitItemPerSecond(10**9)

    def limited(function: Function) -> Function:
        async def call() -> int:
            if not await limiter.hit(rate, "anna"):
                raise RuntimeError("the limit is reached")
            return await function()

        return call

    retried: Any = stamina.retry(on=ValueError, attempts=3)
    broken: Any = breakers("bench")
    functions: dict[str, Function] = {
        "": _plain,
        "stamina": retried(_plain),
        "purgatory": broken(_plain),
        "limits": limited(_plain),
        "all": limited(broken(retried(_plain))),
    }
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            started = time.process_time()
            for _ in range(CALLS):
                await function()
            least[name] = min(least[name], (time.process_time() - started) / CALLS)
    plain = least.pop("")
    return {name: (seconds - plain) * 1e6 for name, seconds in least.items()}


async def _through_a_half_open_breaker() -> int:
    """How many of 20 calls at once reach a service that failed and may have recovered."""
    breakers = AsyncCircuitBreakerFactory(default_threshold=1, default_ttl=0.05)
    reached = 0

    async def call(fails: bool) -> None:
        nonlocal reached
        async with await breakers.get_breaker("service"):
            reached += 1
            await asyncio.sleep(0.01)
            if fails:
                raise ConnectionError

    await asyncio.gather(call(True), return_exceptions=True)
    await asyncio.sleep(0.1)
    reached = 0
    await asyncio.gather(*(call(False) for _ in range(20)), return_exceptions=True)
    return reached


async def _kept() -> float:
    """The memory in MB for one call of each of many users."""
    limiter = FixedWindowRateLimiter(MemoryStorage())
    rate = limits.RateLimitItemPerHour(100)
    tracemalloc.start()
    for user in range(USERS):
        await limiter.hit(rate, f"user {user}")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 1e6
