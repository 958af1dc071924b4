"""Claims that took effect although the store reported a failure: their tasks still end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import httpx
import pytest
from tests.serving import ServedApp

from answerback.core.limits import TaskLimits
from answerback.errors import Unavailable
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import TaskRecord

ASYNC = {"Prefer": "respond-async", "Idempotency-Key": "k"}


class LateStore(SQLiteStore):
    """Keeps what it is given, and once says that it could not."""

    fails = ""

    def add(self, task: TaskRecord, limits: TaskLimits) -> TaskRecord:
        kept = super().add(task, limits)
        self._fail("add")
        return kept

    def claim(
        self, worker: str, lease: float, count: int, tools: Collection[str]
    ) -> list[TaskRecord]:
        claimed = super().claim(worker, lease, count, tools)
        if claimed:
            self._fail("claim")
        return claimed

    def _fail(self, method: str) -> None:
        if self.fails == method:
            self.fails = ""
            raise Unavailable("too late", retryable=True, retry_after=1)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_task_that_was_created_although_the_store_failed_ends(
    tmp_path: Path, idempotent: bool
) -> None:
    app = ServedApp("jobs")
    store = app.task_store = LateStore(tmp_path / "tasks.db", durable=False)
    app.add_tool(lambda: 1, name="job", task="optional", idempotent=idempotent)

    async def main() -> tuple[int, str]:
        asgi = app.asgi()
        assert await asgi.start() is None
        transport = httpx.ASGITransport(asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            store.fails = "add"
            first = await client.post("/functions/job", headers=ASYNC)
            again = await client.post("/functions/job", headers=ASYNC)
            task = await client.get(again.headers["Location"], headers={"Prefer": "wait=30"})
        await asgi.stop()
        return first.status_code, task.json()["status"]

    found = asyncio.run(main())

    assert found == (503, "completed" if idempotent else "failed")


def test_a_task_that_was_claimed_although_the_store_failed_runs(tmp_path: Path) -> None:
    app = ServedApp("jobs")
    store = app.task_store = LateStore(tmp_path / "tasks.db", durable=False)
    running, go_on = asyncio.Event(), asyncio.Event()

    async def job() -> int:
        running.set()
        await go_on.wait()
        return 1

    app.add_tool(job, task="optional", idempotent=True)

    async def main() -> str:
        asgi = app.asgi()
        assert await asgi.start() is None
        transport = httpx.ASGITransport(asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            paths = []
            for n in range(TaskLimits().slots + 1):
                headers = {**ASYNC, "Idempotency-Key": f"k{n}"}
                reply = await client.post("/functions/job", headers=headers)
                paths.append(reply.headers["Location"])
            store.fails = "claim"
            go_on.set()
            task = await client.get(paths[-1], headers={"Prefer": "wait=30"})
        await asgi.stop()
        return str(task.json()["status"])

    assert asyncio.run(main()) == "completed"
