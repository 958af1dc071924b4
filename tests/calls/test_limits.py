"""Limits: time-outs, calls in flight and threads."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.loop_clock import advance_clock

from answerback import App, Conflict, Context, Limits

SLOW = """
import threading
from answerback import App, Limits

app = App("slow", limits=Limits(seconds=0.05))
never = threading.Event()

@app.tool
def stuck() -> int:
    never.wait()
    return 1

@app.tool
async def stuck_async() -> int:
    import asyncio
    await asyncio.Event().wait()
    return 1

@app.tool(timeout=None)
def free() -> int:
    threading.Event().wait(0.1)
    return 7

app.run()
"""


def test_a_plain_tool_that_exceeds_its_time_out_is_cancelled() -> None:
    app = App("slow", limits=Limits(seconds=60))
    begun, stopped = threading.Event(), threading.Event()

    @app.tool
    def slow(ctx: Context) -> int:
        begun.set()
        while not ctx.cancelled:
            threading.Event().wait(0.005)
        stopped.set()
        return 1

    async def call() -> Any:
        running = asyncio.create_task(app.call("slow"))
        await asyncio.to_thread(begun.wait, 60)
        advance_clock(120)
        return await running

    reply = asyncio.run(call())

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert reply.error.row.status == 504
    assert stopped.wait(60)


def test_an_async_tool_that_exceeds_its_time_out_is_ended() -> None:
    app = App("slow")
    ended: list[bool] = []

    @app.tool(timeout=0.05)
    async def slow() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return 1

    reply = asyncio.run(app.call("slow"))

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert ended == [True]


def test_a_timeout_error_that_the_tool_raises_is_an_unexpected_exception() -> None:
    app = App("slow")

    @app.tool(timeout=60)
    async def own() -> int:
        raise TimeoutError("the database is slow")

    reply = asyncio.run(app.call("own"))

    assert reply.error is not None
    assert reply.error.code == "TOOL_EXECUTION_ERROR"


def test_a_driver_that_raises_when_it_is_cancelled_has_still_timed_out() -> None:
    """Database drivers raise errors of their own, such as QueryCanceled."""
    app = App("limits")

    @app.tool(timeout=0.01)
    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("canceling statement due to user request") from None

    reply = asyncio.run(app.call("ask"))

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"


def test_an_author_decides_what_a_call_that_timed_out_says() -> None:
    app = App("limits")

    @app.tool(timeout=0.01)
    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Conflict("the room is still being cleaned") from None

    reply = asyncio.run(app.call("ask"))

    assert reply.error is not None
    assert reply.error.code == "CONFLICT"


@pytest.mark.parametrize(
    ("name", "code"), [("stuck", "TIMED_OUT"), ("stuck_async", "TIMED_OUT"), ("free", None)]
)
def test_a_call_from_the_shell_has_the_same_time_out(
    tmp_path: Path, name: str, code: str | None
) -> None:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    command = [sys.executable, str(file), "call", name, "--dialect", "envelope"]

    done = subprocess.run(command, capture_output=True, timeout=60)

    envelope: dict[str, Any] = json.loads((done.stdout or done.stderr).splitlines()[-1])
    assert envelope.get("error", {}).get("code") == code


def test_a_call_beyond_the_limit_of_calls_in_flight_is_refused_as_unavailable() -> None:
    app = App("busy", limits=Limits(calls=2))

    @app.tool
    async def wait(ctx: Context) -> int:
        await gate.wait()
        return 1

    async def three_at_once() -> list[Any]:
        first, second = (asyncio.ensure_future(app.call("wait")) for _ in range(2))
        await asyncio.sleep(0)
        third = await app.call("wait")
        gate.set()
        return [await first, await second, third, await app.call("wait")]

    gate = asyncio.Event()
    first, second, third, after = asyncio.run(three_at_once())

    assert (first.ok, second.ok, after.ok) == (True, True, True)
    assert third.error is not None
    assert third.error.code == "UNAVAILABLE"
    assert third.error.retryable is True


def test_threads_that_do_not_return_are_logged_and_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("stuck", limits=Limits(threads=2))
    begun, never = threading.Barrier(3), threading.Event()

    @app.tool(timeout=60)
    def stuck() -> None:
        begun.wait(60)
        never.wait(120)

    @app.tool
    def fine() -> int:
        return 7

    async def go_on() -> Any:
        stuck = [asyncio.create_task(app.call("stuck")) for _ in range(2)]
        await asyncio.to_thread(begun.wait, 60)
        advance_clock(120)
        await asyncio.wait(stuck)
        return await asyncio.wait_for(app.call("fine"), 60)

    reply = asyncio.run(go_on())
    never.set()

    assert reply.data == 7
    assert "2 threads are still running calls that timed out or were cancelled" in caplog.text


class Hanging:
    """An app with one thread and a tool that hangs until it is released."""

    def __init__(self) -> None:
        self.app = App("hanging", limits=Limits(threads=1))
        self.running, self.release = threading.Event(), threading.Event()
        self.app.add_tool(self.hang, name="hang", timeout=60)
        self.app.add_tool(lambda: 7, name="fine")

    def hang(self) -> None:
        self.running.set()
        self.release.wait(120)

    async def start(self) -> asyncio.Task[Any]:
        """Call `hang`, and wait until it holds a thread."""
        self.running.clear()
        hung = asyncio.create_task(self.app.call("hang"))
        assert await asyncio.to_thread(self.running.wait, 60)
        return hung

    async def lose_thread(self) -> None:
        """Call `hang` until it times out."""
        hung = await self.start()
        advance_clock(120)
        await hung

    async def fine_while_one_hangs(self) -> tuple[Any, Any]:
        """Call `fine` while `hang` holds a thread, until that times out; gives both replies."""
        hung = await self.start()
        fine = asyncio.create_task(self.app.call("fine"))
        for _ in range(3):  # The call is on its way to the threads.
            await asyncio.sleep(0)
        advance_clock(120)
        return await hung, await asyncio.wait_for(fine, 60)


def test_a_call_that_waits_for_a_thread_gets_the_one_that_replaces_a_lost_one() -> None:
    hanging = Hanging()

    hung, fine = asyncio.run(hanging.fine_while_one_hangs())
    hanging.release.set()

    assert hung.error.code == "TIMED_OUT"
    assert fine.data == 7


def test_a_call_that_waits_when_the_last_thread_is_lost_is_refused() -> None:
    hanging = Hanging()

    async def lose_both() -> tuple[Any, Any]:
        await hanging.lose_thread()
        return await hanging.fine_while_one_hangs()

    hung, fine = asyncio.run(lose_both())
    hanging.release.set()

    assert hung.error.code == "TIMED_OUT"
    assert fine.error.code == "UNAVAILABLE"
    assert fine.error.row.status == 503
    assert fine.error.retryable is True


def test_a_call_that_comes_when_all_threads_are_lost_is_refused_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hanging = Hanging()

    async def lose_both() -> list[Any]:
        await hanging.lose_thread()
        await hanging.lose_thread()
        calls = [hanging.app.call("fine") for _ in range(3)]
        return await asyncio.wait_for(asyncio.gather(*calls), 60)

    refused = asyncio.run(lose_both())
    hanging.release.set()

    assert [reply.error.code for reply in refused] == ["UNAVAILABLE"] * 3
    assert caplog.text.count("calls are refused until one of them returns") == 1


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"calls": 0}, {"seconds": 0}])
def test_limits_of_zero_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"limits|seconds"):
        Limits(**wrong)
