"""Authors' functions that hold all their threads delay none of our own work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.records.support import replies_in
from tests.serving import ServedApp, until

from answerback import Limits
from answerback.options import TaskLimits
from answerback.records import SQLite
from answerback.server.asgi.application import AsgiApp
from answerback.tasks import service, task_runner
from answerback.tasks.sqlite_store import SQLiteStore

LEASE = 2.0


@pytest.fixture(autouse=True)
def short_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "LEASE", LEASE)
    monkeypatch.setattr(task_runner, "LEASE", LEASE)
    monkeypatch.setattr(task_runner, "_RECONCILE", 0.02)


def serve(hold: Callable[[], str], folder: Path, **options: Any) -> AsgiApp:
    limits = Limits(threads=2, shutdown=1, tasks=TaskLimits(slots=2))
    app = ServedApp("busy", limits=limits, **options)
    app.task_store = SQLiteStore(folder / "tasks.db", durable=False)
    app.add_tool(hold, name="hold", task="optional", idempotent=True)

    @app.tool(inline=True)
    def length(text: str) -> int:
        return len(text)

    return app.asgi()


def test_blocked_calls_and_tasks_lose_no_claim_and_no_record_and_the_server_is_ready(
    tmp_path: Path,
) -> None:
    """Contract: stores, records and large decodes never wait for an author's function."""
    running: list[None] = []
    release = threading.Event()

    def hold() -> str:
        running.append(None)
        return "held" if release.wait(60) else "not released"

    async def steps(client: httpx.AsyncClient, store: SQLiteStore) -> Any:
        prefer = {"Prefer": "respond-async"}
        tasks = [await client.post("/functions/hold", headers=prefer) for _ in range(2)]
        calls = [asyncio.create_task(client.post("/functions/hold")) for _ in range(2)]
        await until(lambda: len(running) == 4)
        before = store.claims()

        await until(lambda: store.now() > max(claim.lease for claim in before) + LEASE)
        large = await client.post("/functions/length", json={"text": "x" * 100_000})
        while (ready := await client.get("/readyz")).json()["checks"]["records"]["waiting"]:
            await asyncio.sleep(0.01)
        recorded = [event.tool for event in replies_in(tmp_path / "audit.db")]
        after = store.claims()

        release.set()
        wait = {"Prefer": "wait=10"}
        ended = [await client.get(task.headers["location"], headers=wait) for task in tasks]
        return before, after, large, ready, recorded, ended, await asyncio.gather(*calls)

    async def main() -> Any:
        asgi = serve(hold, tmp_path, records=SQLite(tmp_path / "audit.db"))
        # Another worker, which would give up or take over claims that are not renewed.
        other = serve(hold, tmp_path)
        transport = httpx.ASGITransport(asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            try:
                async with asyncio.timeout(60):
                    await asgi.start()
                    await other.start()
                    return await steps(client, SQLiteStore(tmp_path / "tasks.db"))
            finally:
                release.set()
                await asgi.stop()
                await other.stop()

    before, after, large, ready, recorded, ended, called = asyncio.run(main())
    claims, kept = ({(each.id, each.worker, each.fence) for each in all} for all in (before, after))
    assert kept == claims
    assert (len(claims), len(running)) == (2, 4)
    assert (large.json(), ready.status_code) == ({"result": 100_000}, 200)
    assert recorded == ["length"]
    assert [each.json()["status"] for each in ended] == ["completed", "completed"]
    assert [each.json() for each in called] == [{"result": "held"}] * 2
