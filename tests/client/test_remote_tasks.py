"""The client calls tools that run as tasks, in both versions of MCP that have them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.loop_clock import advance_clock

from answerback import App, Context, NotFound, ToolError, connect
from answerback.client import ElicitationRequest, start_task
from answerback.core.peer import Progress
from answerback.tasks.sqlite_store import SQLiteStore

VERSIONS = ["2025-11-25", "2026-07-28"]


class Jobs:
    """An app whose tools run only as tasks."""

    def __init__(self) -> None:
        self.app = app = App("jobs")
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()

        @app.tool(task="required")
        def square(x: int) -> dict[str, int]:
            return {"square": x * x}

        @app.tool(task="required")
        def find() -> str:
            raise NotFound("no such order")

        @app.tool(task="required")
        async def rename(ctx: Context) -> str:
            return "named " + await ctx.elicit("Which name?", str)

        @app.tool(task="required")
        async def forever() -> None:
            self.started.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()


def run(
    version: str, steps: Callable[[Any, Jobs], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    async def main() -> Any:
        jobs = Jobs()
        async with asyncio.timeout(300), connect(jobs.app, version=version, **options) as server:
            return await steps(server, jobs)

    return asyncio.run(main())


@pytest.mark.parametrize("version", VERSIONS)
def test_calls_that_find_together_that_a_tool_needs_a_task_all_succeed(version: str) -> None:
    async def steps(server: Any, jobs: Jobs) -> Any:
        return await asyncio.gather(*(server.call("square", x=each) for each in range(3)))

    replies = run(version, steps)

    assert [reply.data for reply in replies] == [{"square": each} for each in (0, 1, 4)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_call_waits_for_the_task_and_gives_its_reply(version: str) -> None:
    async def steps(server: Any, jobs: Jobs) -> Any:
        return await server.call("square", x=7), await server.call("find")

    found, missing = run(version, steps)
    assert found.data == {"square": 49}
    assert missing.error.code == "NOT_FOUND"


@pytest.mark.parametrize("version", VERSIONS)
def test_questions_of_a_task_are_answered_by_the_handler(version: str) -> None:
    asked: list[str] = []

    def answer(request: ElicitationRequest) -> Any:
        asked.append(request.message)
        return {next(iter(request.schema["properties"])): "Ada"}

    async def steps(server: Any, jobs: Jobs) -> Any:
        return await server.call("rename")

    reply = run(version, steps, elicit=answer)
    assert reply.data == "named Ada"
    assert asked == ["Which name?"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cancelled_call_cancels_its_task(version: str) -> None:
    async def steps(server: Any, jobs: Jobs) -> bool:
        call = asyncio.create_task(server.call("forever"))
        await jobs.started.wait()
        call.cancel()
        await asyncio.wait([call])
        await jobs.cancelled.wait()
        return call.cancelled()

    assert run(version, steps) is True


@pytest.mark.parametrize("version", VERSIONS)
def test_a_task_that_takes_too_long_is_cancelled_and_times_out(version: str) -> None:
    async def steps(server: Any, jobs: Jobs) -> Any:
        call = asyncio.create_task(server.options(timeout=60).call("forever"))
        await jobs.started.wait()
        advance_clock(120)
        await jobs.cancelled.wait()
        return await call

    assert run(version, steps).error.code == "TIMED_OUT"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_started_task_is_watched_cancelled_and_read(version: str) -> None:
    async def steps(server: Any, jobs: Jobs) -> Any:
        quick = await start_task(server, "square", x=7)
        endless = await start_task(server, "forever")
        await jobs.started.wait()
        before = await endless.status()
        await endless.cancel()
        return await quick.result(), before, await endless.status(), await endless.result()

    found, before, after, cancelled = run(version, steps)
    assert found.data == {"square": 49}
    assert (before["status"], after["status"]) == ("working", "cancelled")
    assert cancelled.error is not None


def test_a_task_that_cannot_be_started_raises() -> None:
    async def steps(server: Any, jobs: Jobs) -> Any:
        with pytest.raises(ToolError) as refused:
            await start_task(server, "nowhere")
        return refused.value

    assert run("2026-07-28", steps).code == "TOOL_NOT_FOUND"


TOOLS = """
import asyncio

from answerback import App

app = App("jobs")


@app.tool(task="required")
def square(x: int) -> dict[str, int]:
    return {"square": x * x}


@app.tool(task="required")
async def forever() -> None:
    await asyncio.Event().wait()


if __name__ == "__main__":
    app.run()
"""


def test_the_client_of_plain_rest_waits_for_tasks_and_cancels_them(
    tmp_path: Path, serve: Callable[..., Any]
) -> None:
    file = tmp_path / "jobs.py"
    file.write_text(TOOLS)
    tasks = tmp_path / "tasks.db"

    async def steps(url: str) -> Any:
        async with asyncio.timeout(60), connect(url, transport="rest") as server:
            # Long enough for the task to be created.
            late = await server.options(timeout=5).call("forever")
            return await server.call("square", x=7), late

    with serve(file, "--tasks", str(tasks)) as server:
        found, late = asyncio.run(steps(server.url))
        states = {task.tool: task.state for task in SQLiteStore(tasks).page(None, None, 10)}

    assert found.data == {"square": 49}
    assert late.error.code == "TIMED_OUT"
    assert states == {"square": "completed", "forever": "cancelled"}


TASKS_ONLY = """
import json, sys
stamp = {"ttl": None, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
tool = {"name": "study", "inputSchema": {"type": "object"},
        "execution": {"taskSupport": "required"}}
refusal = "MCP error -32601: Tool study requires task augmentation (taskSupport: 'required')"
calls, polls = [], 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                  "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}}
    elif method == "tools/list":
        result = {"tools": [tool]}
    elif method == "tools/call":
        calls.append("task" in params)
        result = {"content": [{"type": "text", "text": refusal}], "isError": True}
        if "task" in params:
            result = {"task": {"taskId": "1", "status": "working", "statusMessage": "begun",
                               "pollInterval": 20, **stamp}}
    elif method == "tasks/get":
        polls += 1
        status = "completed" if polls > 3 else "working"
        result = {"taskId": "1", "status": status, "statusMessage": f"step {polls // 2}",
                  "pollInterval": 20, **stamp}
    elif method == "tasks/result":
        result = {"content": [], "structuredContent": {"calls": calls}}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"],
                          "error": {"code": -32601, "message": "Method not found"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
TASKS_ONLY_COMMAND = [sys.executable, "-I", "-S", "-c", TASKS_ONLY]
"""A server that refuses a call without a task with a failed result, as the TypeScript SDK does."""


def test_a_listed_tool_that_needs_a_task_gets_it_at_once() -> None:
    with connect(TASKS_ONLY_COMMAND) as server:
        (tool,) = server.tools()
        reply = server.call("study")

    assert tool.execution == {"taskSupport": "required"}
    assert tool.needs_task
    assert reply.data == {"calls": [True]}


def test_a_failed_result_of_a_tool_that_needs_a_task_is_followed_by_the_task() -> None:
    with connect(TASKS_ONLY_COMMAND) as server:
        reply = server.call("study")

    assert reply.data == {"calls": [False, True]}


def test_progress_gets_the_new_messages_of_a_task() -> None:
    steps: list[Progress] = []

    with connect(TASKS_ONLY_COMMAND) as server:
        server.tools()
        reply = server.options(progress=steps.append).call("study")

    assert reply.ok
    assert [step.message for step in steps] == ["begun", "step 0", "step 1"]
    assert [step.progress for step in steps] == [1, 2, 3]


def test_the_numbers_in_the_messages_of_a_task_are_its_progress() -> None:
    steps: list[Progress] = []
    program = TASKS_ONLY.replace("begun", "0.5 of 4").replace("step {", "1 of 4: step {")

    with connect([*TASKS_ONLY_COMMAND[:-1], program]) as server:
        server.tools()
        server.options(progress=steps.append).call("study")

    assert steps == [Progress(0.5, 4), Progress(1, 4, "step 0"), Progress(1, 4, "step 1")]


def test_a_progress_function_that_raises_loses_no_task(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Progress) -> None:
        raise RuntimeError("no terminal")

    with connect(TASKS_ONLY_COMMAND) as server:
        server.tools()
        reply = server.options(progress=fail).call("study")

    assert reply.ok
    assert "no terminal" in caplog.text


def test_a_task_is_started_without_async() -> None:
    with connect(Jobs().app) as server:
        task = server.start_task("square", x=7)
        reply = task.result()
        state = task.status()
        task.cancel()

    assert task.id
    assert reply.data == {"square": 49}
    assert state["status"] == "completed"


def test_a_task_is_started_on_one_of_several_servers() -> None:
    config = {"mcpServers": {"jobs": Jobs().app, "other": App("other")}}

    async def main() -> Any:
        async with connect(config) as servers:
            task = await start_task(servers, "jobs_square", x=7)
            with pytest.raises(NotFound, match="no server for 'nowhere'"):
                await servers.start_task("nowhere")
            return await task.result()

    with connect(config) as servers:
        blocking = servers.start_task("jobs_square", {"x": 3}).result()

    assert asyncio.run(main()).data == {"square": 49}
    assert blocking.data == {"square": 9}
