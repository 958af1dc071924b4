"""A task file that is moved or removed while it is open: nothing is acknowledged after that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.serving import ServedApp
from tests.tasks.task_client import TaskClient, run_with

from answerback import App, Limits
from answerback.errors import Unavailable
from answerback.tasks.sqlite_store import SQLiteStore

FILES = ("tasks.db", "tasks.db-wal", "tasks.db-shm")


def served(folder: Path) -> App:
    app = ServedApp("jobs", limits=Limits(shutdown=1))
    app.task_store = SQLiteStore(folder / "tasks.db", durable=False)
    app.add_tool(lambda: "done", name="job", task="optional")
    return app


def code_of(result: Any) -> Any:
    return result["_meta"]["answerback/error"]["code"]


@pytest.mark.parametrize("moved", [FILES[:1], FILES], ids=["the file", "its log too"])
def test_a_moved_file_keeps_all_tasks_that_were_acknowledged(
    tmp_path: Path, moved: tuple[str, ...]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    async def steps(client: TaskClient) -> Any:
        ids = [await client.create("job") for _ in range(5)]
        for id in ids:
            await client.until(id)
        for name in moved:
            (tmp_path / name).rename(elsewhere / name)
        return set(ids), await client.call("job")

    ids, refused = run_with(served(tmp_path), steps)

    kept = SQLiteStore(elsewhere / "tasks.db").page(None, None, 100)
    assert code_of(refused) == "UNAVAILABLE"
    assert {task.id for task in kept} == ids
    assert {task.state for task in kept} == {"completed"}
    assert not (tmp_path / "tasks.db").exists()


def test_a_file_that_is_moved_back_is_used_again(tmp_path: Path) -> None:
    path, other = tmp_path / "tasks.db", tmp_path / "other.db"

    async def steps(client: TaskClient) -> Any:
        before = await client.create("job")
        await client.until(before)
        path.rename(other)
        refused = await client.call("job")
        other.rename(path)
        return refused, await client.get(before), await client.until(await client.create("job"))

    refused, before, after = run_with(served(tmp_path), steps)
    assert code_of(refused) == "UNAVAILABLE"
    assert (before["status"], after["status"]) == ("completed", "completed")


def test_a_removed_file_refuses_new_tasks_and_shows_as_failing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def steps(client: TaskClient) -> Any:
        await client.until(await client.create("job"))
        (tmp_path / "tasks.db").unlink()
        return await client.call("job"), await client.get_json("/readyz")

    refused, health = run_with(served(tmp_path), steps)
    assert code_of(refused) == "UNAVAILABLE"
    assert health["checks"]["tasks"]["failing"] is True
    assert "moved or removed" in caplog.text


def test_a_closed_store_makes_no_new_file_where_its_file_was(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    store = SQLiteStore(path)
    assert store.page(None, None, 10) == []
    path.rename(tmp_path / "elsewhere.db")
    store.close()

    # As a thread that still ends does.
    with pytest.raises(Unavailable):
        store.page(None, None, 10)
    assert not path.exists()
