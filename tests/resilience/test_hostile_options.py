"""Values of Retry, Breaker and Limit that cannot work are refused where they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.resilience.manual_clock import ManualClock

from answerback.resilience import Breaker, Limit, Retry

NAN, INF = float("nan"), float("inf")


async def wait_async(attempt: int) -> float:
    return 1.0


async def key_async(ctx: object) -> str:
    return "key"


class NoStore:
    pass


def make(part: Any, *args: Any, **options: Any) -> Callable[[], object]:
    return lambda: part(*args, **options)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (make(Retry, print), r"write @Retry\(\), with parentheses"),
        (make(Breaker, print), r"write @Breaker\('weather-api'\)"),
        (make(Limit, print), r"write @Limit\('10/s'\)"),
        (make(Retry, 0), "attempts=0 should be a whole number of at least 1"),
        (make(Retry, "3"), "attempts='3' should be a whole number of at least 1"),
        (make(Retry, True), "attempts=True should be a whole number of at least 1"),
        (make(Retry, 2.5), "attempts=2.5 should be a whole number of at least 1"),
        (make(Retry, wait="3"), "wait='3' should be a number of seconds, such as 0.5, or a functi"),
        (make(Retry, wait=-1), "wait=-1 should be a number of seconds, such as 0.5, or a function"),
        (make(Retry, wait=NAN), "wait=nan should be a number of seconds, such as 0.5"),
        (make(Retry, wait=wait_async), "wait should be a plain function, not async"),
        (make(Retry, max_wait=NAN), "max_wait=nan should be a number of seconds greater than 0"),
        (make(Retry, max_wait=INF), "max_wait=inf should be a number of seconds greater than 0"),
        (make(Retry, max_wait="60"), "max_wait='60' should be a number of seconds"),
        (make(Retry, deadline=-1), "deadline=-1 should be a number of seconds greater than 0"),
        (make(Retry, deadline=True), "deadline=True should be a number of seconds"),
        (make(Retry, on="OSError"), "on='OSError' should be an exception class or a tuple"),
        (make(Retry, on=(OSError, 3)), "should be an exception class or a tuple"),
        (make(Retry, on=asyncio.CancelledError), "should be an exception class or a tuple"),
        (make(Retry, on=KeyboardInterrupt), "should be an exception class or a tuple"),
        (make(Retry, clock=7), "clock=7 should be a Clock"),
        (make(Breaker, ""), "service='' should be a name"),
        (make(Breaker, 7), "service=7 should be a name"),
        (make(Breaker, "x", failures=0), "failures=0 should be a whole number of at least 1"),
        (make(Breaker, "x", failures=1.5), "failures=1.5 should be a whole number of at least 1"),
        (make(Breaker, "x", reset=0), "reset=0 should be a number of seconds greater than 0"),
        (make(Breaker, "x", reset=NAN), "reset=nan should be a number of seconds"),
        (make(Breaker, "x", counts=[OSError]), "counts=.* should be an exception class or a tuple"),
        (make(Breaker, "x", store=NoStore()), "store=.* has no method enter"),
        (make(Limit, 10), "rate=10 should be like '10/s'"),
        (make(Limit, "5/0s"), "rate='5/0s' should be like '10/s'"),
        (make(Limit, "9" * 5000 + "/s"), "should be like '10/s'"),
        (make(Limit, "٣/s"), "should be like '10/s'"),
        (make(Limit, concurrent=0), "concurrent=0 should be a whole number of at least 1"),
        (make(Limit, concurrent=1.5), "concurrent=1.5 should be a whole number of at least 1"),
        (make(Limit, "1/s", per=["user"]), "per=.* should be 'all', 'user'"),
        (make(Limit, "1/s", per=key_async), "per should be a plain function, not async"),
        (make(Limit, "1/s", store=NoStore()), "store=.* has no method take"),
        (make(Limit, concurrent=1, store=NoStore()), "store= counts by a rate"),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_what_to_write(
    build: Callable[[], object], words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        build()


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("part", [Retry(), Breaker("generators"), Limit("1/s")])
@pytest.mark.parametrize("fn", [generator, async_generator])
def test_a_generator_is_refused_because_it_runs_after_its_call(part: Any, fn: Any) -> None:
    with pytest.raises(TypeError, match="is a generator, which runs after the call has ended"):
        part(fn)


@pytest.mark.parametrize("value", [7, "fetch", None])
def test_only_a_function_can_be_decorated(value: Any) -> None:
    with pytest.raises(TypeError, match="can only decorate a function"):
        Retry()(value)


@pytest.mark.parametrize("value", [None, "1", NAN, True])
def test_a_wait_that_is_no_number_is_named(value: Any) -> None:
    @Retry(wait=lambda attempt: value, clock=ManualClock())
    def fetch() -> None:
        raise ConnectionResetError

    with pytest.raises(TypeError, match=r"wait\(0\) returned .*, not a number of seconds"):
        fetch()


def test_a_negative_wait_is_none_and_an_endless_one_ends_at_the_longest() -> None:
    clock = ManualClock()
    waits = [-5.0, INF]

    @Retry(wait=lambda attempt: waits[attempt], clock=clock)
    def fetch() -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        fetch()

    assert clock.waits == [0.0, 60.0]


def test_thousands_of_attempts_wait_no_longer_than_the_longest_wait() -> None:
    clock = ManualClock()

    @Retry(attempts=1100, max_wait=0.5, clock=clock)
    def fetch() -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        fetch()

    assert clock.waits == [0.5] * 1099
