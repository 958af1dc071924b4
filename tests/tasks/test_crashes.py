"""Tasks whose worker, server or disk fails: each acknowledged task ends in one final state."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.crash import crash
from tests.tasks.task_client import TaskClient, run_with

from answerback import App, Limits
from answerback.tasks.sqlite_store import SQLiteStore


def test_every_acknowledged_task_survives_the_death_of_a_worker_and_of_the_server(
    tmp_path: Path,
) -> None:
    outcome = crash(40, tmp_path)

    assert outcome.wrong == []
    assert len(outcome.calls) >= 38


@pytest.mark.parametrize("failure", ["full disk", "locked"])
def test_a_result_that_cannot_be_written_is_written_later(tmp_path: Path, failure: str) -> None:
    app = App("jobs", limits=Limits(shutdown=1))
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
    with store._lock:
        connection = store._opened()
        now = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages or now}")
