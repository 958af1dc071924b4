"""Calls that wait for a thread: refused if nothing moves, served in order if something does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from answerback import App, Limits

PROGRAM = """
import sys
import threading
from answerback import App, Limits

app = App("busy", limits=Limits(threads=1, wait=0.2))
never = threading.Event()

@app.tool
def hang() -> int:
    print("begun", file=sys.stderr, flush=True)
    never.wait()
    return 1

@app.tool
def add(x: int) -> int:
    return x + 1

@app.tool
async def release() -> int:
    never.set()
    return 1

app.run()
"""


def test_a_call_that_waits_while_every_thread_hangs_is_refused_and_later_ones_are_served() -> None:
    app = App("busy", limits=Limits(threads=1, wait=0.2))
    begun, never = threading.Event(), threading.Event()

    @app.tool
    def hang() -> int:
        begun.set()
        never.wait(60)
        return 1

    @app.tool
    def add(x: int) -> int:
        return x + 1

    async def calls() -> tuple[Any, Any, Any]:
        hanging = asyncio.create_task(app.call("hang"))
        while not begun.is_set():
            await asyncio.sleep(0)
        refused = await asyncio.wait_for(app.call("add", x=1), 60)
        never.set()
        await hanging
        return refused, hanging.result(), await app.call("add", x=1)

    refused, hung, served = asyncio.run(calls())
    assert (refused.error.code, refused.error.retryable) == ("UNAVAILABLE", True)
    assert "none became free within 0.2 seconds" in refused.error.message
    assert (hung.data, served.data) == (1, 2)


@pytest.mark.slow
def test_calls_that_wait_while_others_end_are_all_served() -> None:
    """The last call waits for longer than the limit, but never while nothing ends."""
    app = App("busy", limits=Limits(threads=1, wait=5))

    @app.tool
    def work() -> int:
        threading.Event().wait(0.5)
        return 1

    async def calls() -> list[Any]:
        replies = await asyncio.gather(*(app.call("work") for _ in range(12)))
        return [reply.data for reply in replies]

    assert asyncio.run(calls()) == [1] * 12


def test_over_stdio_a_call_that_waits_while_every_thread_hangs_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "busy.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(program), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        process.stdin.write(_frame(0, "hang", {}))
        process.stdin.flush()
        assert process.stderr.readline() == "begun\n"
        process.stdin.write(_frame(1, "add", {"x": 1}))
        process.stdin.flush()
        refused = json.loads(process.stdout.readline())
        process.stdin.write(_frame(2, "release", {}))
        process.stdin.flush()
        released = [json.loads(process.stdout.readline())["id"] for _ in range(2)]
        process.stdin.write(_frame(3, "add", {"x": 1}))
        process.stdin.flush()
        served = json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    assert refused["id"] == 1
    assert refused["result"]["_meta"]["answerback/error"]["code"] == "UNAVAILABLE"
    assert sorted(released) == [0, 2]
    assert served["result"]["structuredContent"] == {"result": 2}


def _frame(number: int, tool: str, arguments: dict[str, Any]) -> str:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(message) + "\n"


def test_a_wait_of_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="a call cannot wait 0 seconds; allow more"):
        Limits(wait=0)
