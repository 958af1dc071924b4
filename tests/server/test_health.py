"""`/healthz` and `/readyz`: two pages about one list of checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.processes import wait_until
from tests.serving import ServedApp, until
from tests.tasks.task_client import TaskClient, run_with

from answerback import App, Limits
from answerback.records import SQLite
from answerback.registry.declarations import HealthState
from answerback.tasks.sqlite_store import SQLiteStore

SendRequest = Callable[..., Any]


def test_an_app_that_can_serve_calls_is_ready(send_request: SendRequest, tmp_path: Path) -> None:
    app = App("healthy", version="1.0", records=SQLite(tmp_path / "audit.db"))

    response = send_request(app, "GET", "/readyz")

    assert response.status == 200
    assert response.json == {
        "status": "ready",
        "name": "healthy",
        "version": "1.0",
        "checks": {
            "records": {"ready": True, "failing": False, "waiting": 0},
            "threads": {"ready": True, "limit": 40, "lost": 0},
            "shutdown": {"ready": True},
        },
    }


def test_records_that_cannot_be_written_are_shown_and_calls_are_still_served(
    send_request: SendRequest, tmp_path: Path
) -> None:
    (tmp_path / "audit.db").write_bytes(b"not a database" * 1000)
    app = App("recorded", records=SQLite(tmp_path / "audit.db"))
    app.add_tool(lambda: 1, name="one")
    send_request(app, "POST", "/functions/one")

    def records() -> Any:
        return send_request(app, "GET", "/readyz").json["checks"]["records"]

    asyncio.run(until(lambda: records()["failing"]))

    assert send_request(app, "GET", "/readyz").status == 200
    assert send_request(app, "POST", "/functions/one").status == 200
    assert app.records is not None
    app.records.close()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_file_of_tasks_that_fails_is_shown_and_calls_are_still_served(
    tmp_path: Path, is_damaged: bool
) -> None:
    if is_damaged:
        (tmp_path / "tasks.db").write_bytes(b"not a database" * 1000)
    app = ServedApp("jobs", limits=Limits(shutdown=1))
    app.task_store = SQLiteStore(tmp_path / "tasks.db")

    async def steps(client: TaskClient) -> Any:
        async with asyncio.timeout(60):
            while (health := await client.get_json("/readyz"))["checks"]["tasks"]["failing"] != (
                is_damaged
            ):
                await asyncio.sleep(0.005)
        return health

    health = run_with(app, steps)
    assert health["checks"]["tasks"] == {"ready": True, "failing": is_damaged, "running": 0}
    assert health["status"] == "ready"


FULL_DISK = """
import resource

from answerback import App

app = App("jobs")
app.add_tool(lambda: "done", name="job", task="required")


@app.tool(inline=True)
def limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


app.run()
"""


def test_a_full_disk_is_shown_as_failing_until_there_is_room(
    tmp_path: Path, serve: Callable[..., Any], call: Any
) -> None:
    file = tmp_path / "jobs.py"
    file.write_text(FULL_DISK)
    with serve(file, "--tasks", str(tmp_path / "tasks.db")) as server:

        def is_failing() -> bool:
            health = httpx.get(f"{server.url}/readyz").json()
            return bool(health["checks"]["tasks"]["failing"])

        call(server, "limit_files", size=1)
        refused = httpx.post(f"{server.url}/functions/job")
        is_shown = is_failing()
        call(server, "limit_files", size=-1)
        wait_until(lambda: not is_failing())
        accepted = httpx.post(f"{server.url}/functions/job")

    assert refused.status_code == 503
    assert is_shown
    assert accepted.status_code == 202


def test_a_server_that_shuts_down_is_alive_and_not_ready() -> None:
    app = App("ending").asgi()
    statuses = {}

    async def get(path: str) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "headers": []}
        await app(scope, receive, send)
        status: int = sent[0]["status"]
        return status

    async def live_and_end() -> None:
        events = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> Any:
            return {"type": next(events)}

        async def send(message: Any) -> None:
            for path in ("/healthz", "/readyz"):
                statuses[message["type"], path] = await get(path)

        await app({"type": "lifespan"}, receive, send)

    asyncio.run(live_and_end())

    assert statuses == {
        ("lifespan.startup.complete", "/healthz"): 200,
        ("lifespan.startup.complete", "/readyz"): 200,
        ("lifespan.shutdown.complete", "/healthz"): 200,
        ("lifespan.shutdown.complete", "/readyz"): 503,
    }


def test_a_check_that_raises_makes_the_app_not_ready(
    send_request: SendRequest, caplog: pytest.LogCaptureFixture
) -> None:
    app = ServedApp("failing")

    def fail() -> HealthState:
        raise OSError("hunter2")

    app.checks = {"database": fail}

    response = send_request(app, "GET", "/readyz")

    assert response.status == 503
    assert response.json["checks"]["database"] == {"ready": False, "error": "the check failed"}
    assert "internal error in the health check 'database'" in caplog.text
