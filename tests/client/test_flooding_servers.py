"""Servers that ask without end, do not read, or do not end: the client's own work stays bounded."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from answerback import connect

SERVER = Path(__file__).parent / "flooding_server.py"


def flooding(how: str, *more: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(SERVER), how, *more]


def test_a_request_whose_id_is_being_answered_is_not_answered_twice() -> None:
    asked: list[Any] = []

    async def wait_for_ever(question: Any) -> None:
        asked.append(question)
        await asyncio.Event().wait()

    async def call() -> Any:
        async with connect(flooding("one id"), elicit=wait_for_ever, timeout=60) as server:
            return await server.call("act")

    reply = asyncio.run(call())

    assert reply.ok
    assert len(asked) == 1


def test_a_cancelled_call_that_the_server_has_not_read_yet_is_not_sent(tmp_path: Path) -> None:
    signal = tmp_path / "read"

    async def call() -> Any:
        async with connect(flooding("no reading", str(signal)), timeout=60) as server:
            first = asyncio.create_task(server.call("first"))
            large = asyncio.create_task(server.call("large", text="x" * 5_000_000))
            await asyncio.sleep(0)
            dropped = asyncio.create_task(server.call("dropped"))
            await asyncio.sleep(0)
            dropped.cancel()
            await asyncio.wait([dropped])
            signal.touch()
            await asyncio.gather(first, large)
            return await server.call("last")

    reply = asyncio.run(call())

    assert reply.for_model() == "first large last"


def test_ending_a_child_that_stays_warns_of_no_unknown_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def call() -> Any:
        async with connect(flooding("staying"), timeout=0.1) as server:
            return await server.call("act")

    reply = asyncio.run(call())

    assert reply.error.code == "TIMED_OUT"
    assert "Unknown child process" not in caplog.text
