"""Tasks whose worker, server or disk fails: each acknowledged task ends in one final state."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.official_tools import CONFORMANCE
from tests.serving import ServedApp
from tests.tasks.crash import crash
from tests.tasks.task_client import RpcFailure, TaskClient, run_with

from answerback import App, Context, Limits
from answerback.options import TaskLimits
from answerback.registry.declarations import registry_of
from answerback.tasks import task_runner as task_watch
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import TaskRecord, new_id
from answerback.tasks.task_store import MemoryStore
from answerback.tasks.transitions import cancelled


def test_every_acknowledged_task_survives_the_death_of_a_worker_and_of_the_server(
    tmp_path: Path,
) -> None:
    outcome = crash(40, tmp_path)

    assert outcome.wrong == []
    assert len(outcome.calls) >= 38


@pytest.mark.parametrize("failure", ["full disk", "locked"])
def test_a_result_that_cannot_be_written_is_written_later(tmp_path: Path, failure: str) -> None:
    app = ServedApp("jobs", limits=Limits(shutdown=1))
    path = tmp_path / "tasks.db"
    store = app.task_store = SQLiteStore(path, durable=False, busy=0.05)
    finish = asyncio.Event()

    @app.tool(task="optional")
    async def report(note: str = "") -> str:
        await finish.wait()
        return "x" * 50_000

    async def steps(client: TaskClient) -> Any:
        id = await client.create("report")
        holder = sqlite3.connect(path, isolation_level=None)
        if failure == "locked":
            holder.execute("BEGIN IMMEDIATE")
        else:
            _limit_pages(store, None)
        finish.set()
        refused = await client.call("report", note="y" * 100_000)
        during = await client.get(id)
        if failure == "locked":
            with pytest.raises(RpcFailure, match="cannot be read or written"):
                await client.request("tasks/cancel", taskId=id)
        if failure == "locked":
            holder.execute("ROLLBACK")
        else:
            _limit_pages(store, 100_000)
        holder.close()
        return during, refused, await client.until(id)

    during, refused, done = run_with(app, steps)
    assert during["status"] == "working"
    assert refused["_meta"]["answerback/error"]["code"] == "UNAVAILABLE"
    assert done["status"] == "completed"
    assert len(done["result"]["content"][0]["text"]) == 50_000


def _limit_pages(store: SQLiteStore, pages: int | None) -> None:
    """Let the file grow to so many pages, or not at all."""
    with store._opened("reading") as connection:
        now = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages or now}")


def test_a_question_survives_a_restart(tmp_path: Path) -> None:
    def served() -> App:
        app = ServedApp("jobs", limits=Limits(shutdown=1))
        app.task_store = SQLiteStore(tmp_path / "tasks.db")

        @app.tool(task="optional")
        async def rename(ctx: Context) -> str:
            return "named " + await ctx.elicit("Which name?", str)

        return app

    async def ask(client: TaskClient) -> Any:
        return await client.until(await client.create("rename"), "input_required")

    async def answer(client: TaskClient) -> Any:
        [key] = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"value": "Ada"}}}
        await client.request("tasks/update", taskId=asked["taskId"], inputResponses=answers)
        return await client.until(asked["taskId"])

    asked = run_with(served(), ask)
    done = run_with(served(), answer)

    assert done["result"]["content"][0]["text"] == "named Ada"


def test_a_task_that_waits_for_a_slot_starts_after_a_restart(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "tasks.db")
    now = time.time()
    task = TaskRecord(id=new_id(), tool="job", arguments=b"{}", created=now, changed=now)
    store.add(task, TaskLimits())
    store.close()
    app = ServedApp("jobs", limits=Limits(shutdown=1))
    app.task_store = store
    app.add_tool(lambda: "done", name="job", task="optional")

    done = run_with(app, lambda client: client.until(task.id))

    assert done["result"]["content"][0]["text"] == "done"


def test_a_shutdown_waits_for_the_tasks_that_run(tmp_path: Path) -> None:
    app = ServedApp("jobs", limits=Limits(shutdown=5))
    store = app.task_store = SQLiteStore(tmp_path / "tasks.db")

    @app.tool(task="optional")
    async def job() -> str:
        await asyncio.sleep(0.2)
        return "done"

    id = run_with(app, lambda client: client.create("job"))

    task = store.get(id)
    assert task is not None
    assert task.state == "completed"


def test_a_task_that_another_process_cancels_ends_at_once(tmp_path: Path) -> None:
    app = ServedApp("jobs", limits=Limits(shutdown=1))
    app.task_store = SQLiteStore(tmp_path / "tasks.db")
    other = SQLiteStore(tmp_path / "tasks.db")
    begun, ended = asyncio.Event(), asyncio.Event()

    @app.tool(task="optional")
    async def job() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def steps(client: TaskClient) -> Any:
        id = await client.create("job")
        await begun.wait()
        await asyncio.to_thread(other.change, id, cancelled)
        await ended.wait()
        return await client.get(id)

    task = run_with(app, steps)
    other.close()

    assert task["status"] == "cancelled"


def test_a_task_whose_client_disconnects_while_it_is_recorded_still_runs(tmp_path: Path) -> None:
    recording, go_on = threading.Event(), threading.Event()

    class SlowStore(SQLiteStore):
        def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
            recording.set()
            go_on.wait(60)
            return super().add(task, limits)

    app = ServedApp("jobs", limits=Limits(shutdown=1))
    store = app.task_store = SlowStore(tmp_path / "tasks.db")
    app.add_tool(lambda: "done", name="job", task="optional")

    async def steps(client: TaskClient) -> Any:
        calling = asyncio.create_task(client.call("job"))
        await asyncio.to_thread(recording.wait, 60)
        calling.cancel()
        await asyncio.wait({calling})
        go_on.set()
        async with asyncio.timeout(60):
            while not (tasks := await asyncio.to_thread(store.page, None, None, 10)):
                await asyncio.sleep(0.005)
        return await client.until(tasks[0].id)

    assert run_with(app, steps)["status"] == "completed"


def test_a_worker_with_free_slots_runs_the_tasks_that_another_one_cannot(tmp_path: Path) -> None:
    ran: list[str] = []
    free = asyncio.Event()

    def worker(name: str) -> App:
        app = ServedApp(name, limits=Limits(shutdown=1))
        registry_of(app).limits = Limits(tasks=TaskLimits(slots=1))
        app.task_store = SQLiteStore(tmp_path / "tasks.db", durable=False)

        @app.tool(task="optional")
        async def job(wait: bool = False) -> str:
            ran.append(name)
            if wait:
                await free.wait()
            return name

        return app

    async def steps(client: TaskClient) -> Any:
        other = worker("other").asgi()
        holding = await client.create("job", wait=True)
        assert await other.start() is None
        waiting = await client.create("job")
        done = await client.until(waiting)
        free.set()
        await client.until(holding)
        await other.stop()
        return done

    done = run_with(worker("full"), steps)
    assert done["result"]["content"][0]["text"] == "other"
    assert ran == ["full", "other"]


def test_a_task_that_is_claimed_while_its_server_shuts_down_is_run_to_its_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tasks.db"
    claims, goes_on = threading.Event(), threading.Event()

    class SlowToClaim(SQLiteStore):
        def claim(self, *arguments: Any) -> list[TaskRecord]:
            claimed = super().claim(*arguments)
            if claimed:
                claims.set()
                goes_on.wait(60)
            return claimed

    app = ServedApp("jobs", limits=Limits(shutdown=30))
    app.task_store = SlowToClaim(path, durable=False)

    @app.tool(task="optional")
    async def job() -> str:
        return "done"

    async def shut_down() -> None:
        asgi = app.asgi()
        assert await asgi.start() is None
        await asyncio.to_thread(claims.wait, 60)
        stopping = asyncio.create_task(asgi.stop())
        # It must not end as long as tasks are claimed.
        await asyncio.wait({stopping}, timeout=0.5)
        goes_on.set()
        await stopping

    task = TaskRecord(id=new_id(), tool="job", arguments=b"{}", created=1e9, changed=1e9)
    SQLiteStore(path, durable=False).add(task, TaskLimits())
    asyncio.run(shut_down())

    [kept] = SQLiteStore(path).page(None, None, 10)
    assert kept.state == "completed"


def test_a_task_in_a_file_ends_after_its_client_on_stdio_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    call = {"name": "slow_compute", "arguments": {"seconds": 0.3}, "task": {}}
    messages = [
        {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"method": "tools/call", "params": call},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", "id": n, **each}) for n, each in enumerate(messages)]

    subprocess.run(
        [sys.executable, str(CONFORMANCE), "mcp", "--tasks", str(path)],
        input="\n".join(lines).encode(),
        capture_output=True,
        timeout=60,
        check=True,
    )

    [task] = SQLiteStore(path).page(None, None, 10)
    assert task.state == "completed"


def test_a_signal_ends_a_stdio_server_and_its_tasks_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    command = [sys.executable, str(CONFORMANCE), "mcp", "--tasks", str(path)]
    call = {"name": "slow_compute", "arguments": {"seconds": 60}, "task": {}}
    messages = [
        {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"method": "tools/call", "params": call},
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for n, each in enumerate(messages):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, **each}).encode() + b"\n")
            process.stdin.flush()
            process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)

    [task] = SQLiteStore(path).page(None, None, 10)
    assert status == 128 + signal.SIGTERM
    assert task.state == "failed"
    assert "may have taken effect" in task.message


def test_a_jump_of_the_clock_does_not_take_tasks_from_workers_that_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ahead, looks = time.time, 0.0, 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return real() + ahead

    monkeypatch.setattr(task_watch, "_RECONCILE", 0.02)
    free = asyncio.Event()

    def worker() -> App:
        app = ServedApp("jobs", limits=Limits(shutdown=1))
        app.task_store = SQLiteStore(tmp_path / "tasks.db", durable=False, clock=clock)

        @app.tool(task="optional")
        async def job() -> str:
            await free.wait()
            return "done"

        return app

    async def looked_often() -> None:
        enough = looks + 20
        while looks < enough:
            await asyncio.sleep(0.005)

    async def steps(client: TaskClient) -> Any:
        nonlocal ahead
        other = worker().asgi()
        id = await client.create("job")
        assert await other.start() is None
        await looked_often()
        ahead = 60.0
        await looked_often()
        free.set()
        done = await client.until(id)
        await other.stop()
        return done

    assert run_with(worker(), steps)["status"] == "completed"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_jump_of_the_clock_does_not_remove_finished_tasks(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ahead, looks = time.time, 0.0, 0

    def clock() -> float:
        nonlocal looks
        looks += ahead > 0
        return real() + ahead

    monkeypatch.setattr(task_watch, "_RECONCILE", 0.02)
    app = ServedApp("jobs", limits=Limits(shutdown=1))
    app.task_store = (
        MemoryStore(clock)
        if kind == "memory"
        else SQLiteStore(tmp_path / "tasks.db", durable=False, clock=clock)
    )
    app.add_tool(lambda: "done", name="job", task="optional")

    async def steps(client: TaskClient) -> Any:
        nonlocal ahead
        id = await client.create("job")
        await client.until(id)
        ahead = 7200.0
        while looks < 20:
            await client.get(id)
        return await client.get(id)

    assert run_with(app, steps)["status"] == "completed"
