"""Async tools over stdio: they are answered from the event loop, and hold no thread meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.processes import wait_until
from tests.server.test_stdio import Client, result_of, running

FILE = """
import asyncio, sys, threading, time
from pathlib import Path
from typing import Annotated
from answerback import App, Ask, Context

app = App("async")
released = asyncio.Event()
sleeping = 0

@app.tool
async def sleep(path: str = "") -> int:
    global sleeping
    sleeping += 1
    try:
        await released.wait()
    except asyncio.CancelledError:
        Path(path).touch()
        raise
    return sleeping

@app.tool
async def count() -> list[int]:
    return [sleeping, threading.active_count()]

@app.tool
async def release() -> int:
    released.set()
    return 1

@app.tool
async def leave(kind: str) -> int:
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt}[kind]("now")

@app.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Name?", str)
    return f"{answer} on {threading.current_thread().name}"

@app.tool
def ask_plain(name: Annotated[str, Ask("Name?")]) -> str:
    return f"{name} in {threading.current_thread().name}"

def decorated(function):
    def call(x: int) -> int:
        return function(x)
    return call

@app.tool(name="double")
@decorated
async def double(x: int) -> int:
    await asyncio.sleep(0)
    return 2 * x

@app.tool
async def large(size: int) -> str:
    return "x" * size

@app.tool(timeout=60)
def timed() -> str:
    return threading.current_thread().name

app.run()
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    file = tmp_path / "served.py"
    file.write_text(FILE)
    with running(file) as process:
        yield Client(process)


def call(client: Client, id: int, name: str, **arguments: Any) -> None:
    client.send(id, "tools/call", name=name, arguments=arguments)


def counts(client: Client) -> list[int]:
    call(client, 10_000, "count")
    found: list[int] = result_of(client.read())
    return found


def test_900_calls_that_sleep_hold_no_thread_and_are_all_answered(client: Client) -> None:
    for id in range(900):
        call(client, id, "sleep")
    assert wait_until(lambda: counts(client)[0] == 900)
    threads = counts(client)[1]
    call(client, 1000, "release")
    answered = {client.read()["id"] for _ in range(901)}

    # The main thread, the one that reads, that of the event loop, and one that may write.
    assert threads <= 4
    assert answered == {*range(900), 1000}


def test_a_cancelled_call_is_cancelled_on_the_loop_and_gets_no_answer(
    client: Client, tmp_path: Path
) -> None:
    cancelled = tmp_path / "cancelled"
    call(client, 1, "sleep", path=str(cancelled))
    assert wait_until(lambda: counts(client)[0] == 1)
    client.notify("notifications/cancelled", requestId=1)
    assert wait_until(cancelled.exists)
    client.send(2, "ping")

    assert client.read()["id"] == 2


@pytest.mark.parametrize("kind", ["exit", "interrupt"])
def test_an_exit_in_an_async_tool_only_fails_its_call(client: Client, kind: str) -> None:
    call(client, 1, "leave", kind=kind)
    failed = client.read()["result"]
    call(client, 2, "release")

    assert failed["isError"] is True
    assert result_of(client.read()) == 1


@pytest.mark.parametrize(("tool", "where"), [("ask", "on answerback-loop"), ("ask_plain", "in ")])
def test_async_and_plain_tools_can_ask_the_user(client: Client, tool: str, where: str) -> None:
    hello = {"name": "test", "version": "1"}
    client.send(
        0,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={"elicitation": {}},
        clientInfo=hello,
    )
    client.read()
    call(client, 1, tool)
    question = client.read()
    client.send(2, "ping")
    between = client.read()
    field = next(iter(question["params"]["requestedSchema"]["properties"]))
    client.respond(question["id"], {"action": "accept", "content": {field: "Ada"}})
    result = result_of(client.read())

    assert question["method"] == "elicitation/create"
    assert between["id"] == 2
    assert result.startswith(f"Ada {where}")


def test_a_plain_function_that_returns_a_coroutine_is_awaited(client: Client) -> None:
    call(client, 1, "double", x=4)

    assert result_of(client.read()) == 8


def test_a_plain_function_with_a_time_out_runs_in_a_thread_of_the_pool(client: Client) -> None:
    call(client, 1, "timed")

    assert result_of(client.read()).startswith("answerback-")


def test_the_loop_goes_on_while_the_client_does_not_read(client: Client, tmp_path: Path) -> None:
    """The answers fill the pipe; the cancellation of another call still reaches its task."""
    cancelled = tmp_path / "cancelled"
    call(client, 1, "sleep", path=str(cancelled))
    assert wait_until(lambda: counts(client)[0] == 1)
    for id in range(2, 12):
        call(client, id, "large", size=100_000)
    client.notify("notifications/cancelled", requestId=1)

    assert wait_until(cancelled.exists)
    assert sorted(client.read()["id"] for _ in range(10)) == list(range(2, 12))


def test_answers_that_the_client_reads_late_are_sent_before_the_end(tmp_path: Path) -> None:
    file = tmp_path / "served.py"
    file.write_text(FILE)
    with running(file) as process:
        client = Client(process)
        for id in range(10):
            call(client, id, "large", size=100_000)
        lines = process.communicate(timeout=60)[0].splitlines()

    assert process.returncode == 0
    assert len(lines) == 10
