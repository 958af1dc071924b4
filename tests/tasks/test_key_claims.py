"""Idempotency keys of calls that run long, and of servers that died in another container."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serving import ServedApp

from answerback import Limits
from answerback.options import Task, TaskLimits
from answerback.tasks import service as keyed_calls
from answerback.tasks import task_runner as task_watch
from answerback.tasks.sqlite_store import SQLiteStore

KEY = {"Idempotency-Key": "k-1"}


class DeadStore(SQLiteStore):
    """The store of a server that no longer renews its claims."""

    def renew(self, workers: Collection[str], until: float) -> None:
        pass


class Server:
    """An app with one tool that takes a key, and a client of it."""

    def __init__(self, store: SQLiteStore, retention: float = 3600) -> None:
        tasks = TaskLimits(retention=retention)
        self.app = ServedApp("shop", limits=Limits(shutdown=0.1, tasks=tasks))
        self.app.task_store = store
        self.paid, self.running = asyncio.Event(), asyncio.Event()
        self.app.add_tool(self._pay, name="pay", task=Task(key=True))

    async def _pay(self) -> str:
        self.running.set()
        await self.paid.wait()
        return "paid"

    async def start(self, stack: AsyncExitStack) -> None:
        asgi = self.app.asgi()
        assert await asgi.start() is None
        stack.push_async_callback(asgi.stop)
        transport = httpx.ASGITransport(asgi)
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)
        self._client = await stack.enter_async_context(client)

    async def call(self) -> httpx.Response:
        return await self._client.post("/functions/pay", headers=KEY)


def run(steps: Any) -> Any:
    async def main() -> Any:
        async with AsyncExitStack() as stack, asyncio.timeout(60):
            return await steps(stack)

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_calls, "LEASE", 3.0)
    monkeypatch.setattr(task_watch, "LEASE", 3.0)
    monkeypatch.setattr(task_watch, "_RECONCILE", 0.02)


def test_the_key_of_a_server_that_died_elsewhere_says_that_the_call_may_have_taken_effect(
    tmp_path: Path,
) -> None:
    dead, server = (
        Server(kind(tmp_path / "tasks.db", durable=False)) for kind in (DeadStore, SQLiteStore)
    )

    async def steps(stack: AsyncExitStack) -> Any:
        await dead.start(stack)
        await server.start(stack)
        calling = asyncio.create_task(dead.call())
        await dead.running.wait()
        at_once = await server.call()
        while (later := await server.call()).status_code == 409:
            await asyncio.sleep(0.01)
        dead.paid.set()
        await calling
        return at_once, later

    at_once, later = run(steps)
    assert at_once.status_code == 409
    assert later.headers["x-error-code"] == "WORKER_LOST"
    assert not server.running.is_set()


def test_a_call_that_runs_longer_than_its_lease_and_the_retention_keeps_its_key(
    tmp_path: Path,
) -> None:
    store = SQLiteStore(tmp_path / "tasks.db", durable=False)
    server = Server(store, retention=0.01)

    async def steps(stack: AsyncExitStack) -> Any:
        await server.start(stack)
        calling = asyncio.create_task(server.call())
        await server.running.wait()
        [claim] = await asyncio.to_thread(store.claims)
        while claim.lease >= (renewed := await asyncio.to_thread(store.claims))[0].lease:
            await asyncio.sleep(0.01)
        server.paid.set()
        return renewed, await calling, await server.call()

    renewed, first, repeated = run(steps)
    assert len(renewed) == 1
    assert (first.status_code, repeated.status_code) == (200, 200)
    assert first.content == repeated.content
