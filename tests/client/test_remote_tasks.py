"""The client calls tools that run as tasks, in both versions of MCP that have them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.loop_clock import advance_clock

from answerback import App, Context, NotFound, ToolError, connect
from answerback.client import ElicitationRequest, start_task
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
