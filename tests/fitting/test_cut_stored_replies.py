"""Tasks and calls with an idempotency key: the whole is stored, and cut when it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fuzz.stdio_client import request, stdio_client
from tests.serving import ServedApp
from tests.tasks.task_client import DECLARED, PREFIX, TaskClient, run_with

from answerback import App, Limits, Page
from answerback.options import Task
from answerback.tasks.sqlite_store import SQLiteStore

NUMBERS = list(range(5000))
STORED = Path(__file__).parent / "stored_app.py"


@pytest.fixture(params=["memory", "sqlite"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> App:
    made = ServedApp("jobs", limits=Limits(shutdown=1), budget=1000)
    if request.param == "sqlite":
        made.task_store = SQLiteStore(tmp_path / "tasks.db", durable=False)
    return made


def checked(result: Any) -> list[int]:
    """The numbers of a result that was cut."""
    [cut] = result["_meta"]["answerback/cut"]
    numbers: list[int] = result["structuredContent"]["result"]
    assert len(msgspec.json.encode(result["structuredContent"])) <= 1000
    assert (cut["returned"], cut["total"]) == (len(numbers), 5000)
    assert numbers == NUMBERS[: cut["returned"]]
    return numbers


def test_the_result_of_a_task_is_cut_each_time_it_is_sent(app: App) -> None:
    app.add_tool(lambda: NUMBERS, name="numbers", task="optional")

    async def steps(client: TaskClient) -> list[Any]:
        task = await client.request("tools/call", name="numbers", arguments={})
        await client.until(task["taskId"])
        found = [await client.request("tasks/get", taskId=task["taskId"]) for _ in range(2)]
        return [each["result"] for each in found]

    first, again = run_with(app, steps)

    assert checked(first) == checked(again)


def test_the_whole_of_a_task_can_be_read(app: App) -> None:
    app.add_tool(lambda: NUMBERS, name="numbers", task="optional")

    async def steps(client: TaskClient) -> Any:
        task = await client.request("tools/call", name="numbers", arguments={})
        result = (await client.until(task["taskId"]))["result"]
        [uri] = [each["uri"] for each in result["content"] if each["type"] == "resource_link"]
        return await client.request("resources/read", uri=uri)

    read = run_with(app, steps)

    assert msgspec.json.decode(read["contents"][0]["text"]) == NUMBERS


def test_a_call_with_a_key_is_cut_and_so_is_its_repetition(app: App) -> None:
    ran = []

    @app.tool(task=Task(key=True))
    def numbers() -> list[int]:
        ran.append(1)
        return NUMBERS

    async def steps(client: TaskClient) -> list[Any]:
        client.capabilities = {}
        meta = {"answerback/idempotencyKey": "one"}
        return [
            await client.request("tools/call", meta, name="numbers", arguments={}) for _ in range(2)
        ]

    first, again = run_with(app, steps)

    assert ran == [1]
    assert checked(first) == checked(again)


def test_the_pages_of_a_task_continue(app: App) -> None:
    @app.tool(task="optional")
    def pages() -> Page[int]:
        return Page(NUMBERS, total=len(NUMBERS))

    async def steps(client: TaskClient) -> list[int]:
        found: list[int] = []
        arguments: dict[str, Any] = {}
        while True:
            task = await client.request("tools/call", name="pages", arguments=arguments)
            result = (await client.until(task["taskId"]))["result"]
            page = result["structuredContent"]
            first = len(found) + 1
            found += page["items"]
            if page["next"] is None:
                return found
            note = f"Showing items {first:,} to {len(found):,} of 5,000."
            assert note in result["content"][0]["text"]
            arguments = {"cursor": page["next"]}

    assert run_with(app, steps) == NUMBERS


def test_the_pages_of_tasks_continue_in_plain_calls(app: App) -> None:
    @app.tool(task="optional")
    def pages() -> Page[int]:
        return Page(NUMBERS, total=len(NUMBERS))

    async def steps(client: TaskClient) -> list[int]:
        found: list[int] = []
        arguments: dict[str, Any] = {}
        declared, turn = client.capabilities, 0
        while True:
            client.capabilities = declared if turn % 3 else {}
            result = await client.request("tools/call", name="pages", arguments=arguments)
            if turn % 3:
                result = (await client.until(result["taskId"]))["result"]
            page = result["structuredContent"]
            found += page["items"]
            if page["next"] is None:
                return found
            arguments, turn = {"cursor": page["next"]}, turn + 1

    assert run_with(app, steps) == NUMBERS


def test_a_client_that_listens_gets_the_cut_result() -> None:
    meta = {
        PREFIX + "protocolVersion": "2026-07-28",
        PREFIX + "clientCapabilities": DECLARED,
    }
    with stdio_client(STORED) as client:
        call = {"name": "numbers", "arguments": {}, "_meta": meta}
        id = client.request("tools/call", call)["result"]["taskId"]
        listen = {"notifications": {"taskIds": [id]}, "_meta": meta}
        client.send(request("listen", "subscriptions/listen", listen))
        seen: dict[str, Any] = {}
        while seen.get("status") != "completed":
            message = client.receive()
            if message.get("method") == "notifications/tasks":
                seen = message["params"]

    assert checked(seen["result"])
