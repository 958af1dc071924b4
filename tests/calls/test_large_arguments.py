"""Large arguments are decoded one at a time, on a thread beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from answerback import App
from answerback.types.json_text import LARGE

TEXT = "x" * LARGE
BOUND = 60


class Gate:
    """Holds the decoding of every `Checked` until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.threads: list[int] = []
        self.at_once = 0
        self.most_at_once = 0

    def pass_through(self) -> None:
        self.threads.append(threading.get_ident())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.entered.set()
        assert self.opened.wait(BOUND)
        self.at_once -= 1


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def app(gate: Gate) -> App:
    @dataclass
    class Checked:
        text: str

        def __post_init__(self) -> None:
            gate.pass_through()

    app = App("large")

    def length(value: Any) -> int:
        return len(value.text)

    length.__annotations__ = {"value": Checked, "return": int}
    app.add_tool(length)

    @app.tool
    def quick() -> int:
        return 1

    return app


async def _entered(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.entered.wait, BOUND)


def test_large_arguments_are_decoded_one_after_the_other_beside_other_calls(
    app: App, gate: Gate
) -> None:
    async def run() -> tuple[Any, list[Any]]:
        calls = [asyncio.create_task(app.call("length", value={"text": TEXT})) for _ in range(3)]
        await _entered(gate)
        quick = await app.call("quick")
        gate.opened.set()
        return quick, await asyncio.gather(*calls)

    quick, replies = asyncio.run(run())

    assert quick.data == 1
    assert [reply.data for reply in replies] == [LARGE] * 3
    assert gate.most_at_once == 1
    assert threading.get_ident() not in gate.threads


def test_a_call_that_is_cancelled_while_it_is_decoded_does_not_let_the_next_one_begin(
    app: App, gate: Gate
) -> None:
    async def run() -> tuple[Any, list[Any]]:
        first = asyncio.create_task(app.call("length", value={"text": TEXT}))
        await _entered(gate)
        first.cancel()
        others = [asyncio.create_task(app.call("length", value={"text": TEXT})) for _ in range(2)]
        quick = await app.call("quick")
        gate.opened.set()
        return quick, await asyncio.gather(*others)

    quick, replies = asyncio.run(run())

    assert quick.data == 1
    assert [reply.data for reply in replies] == [LARGE] * 2
    assert gate.most_at_once == 1


def test_small_arguments_are_decoded_on_the_event_loop(app: App, gate: Gate) -> None:
    gate.opened.set()

    reply = asyncio.run(app.call("length", value={"text": "x" * 1_000}))

    assert reply.data == 1_000
    assert gate.threads == [threading.get_ident()]


def test_arguments_with_many_large_exponents_are_refused_before_they_are_decoded() -> None:
    app = App("sums")

    @app.tool
    def total(numbers: list[float]) -> float:
        return sum(numbers)

    few = asyncio.run(app.call("total", numbers=[1e300] * 3_000))
    many = asyncio.run(app.call("total", numbers=[1e300] * 10_001))

    assert few.ok
    assert many.error is not None
    assert many.error.code == "TOO_LARGE"
