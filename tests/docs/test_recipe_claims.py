"""What the recipes say about failures, tried with the servers of the pages."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from tests.conftest import serving
from tests.docs.page_runner import ROOT, blocks
from tests.state.postgres import Postgres

RECIPES = ROOT / "docs" / "guides" / "recipes"


def write_files(page: str, folder: Path) -> None:
    """Write the files of a recipe."""
    for block in blocks(RECIPES / page):
        if block.kind == "python" and (named := re.match(r"# (\w+\.py)\n", block.text)):
            (folder / named[1]).write_text(block.text)


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that the test may stop."""
    server = Postgres()
    yield server
    server.close()


def loaded(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_tools_answer_unavailable_while_the_database_is_away(
    own_postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract: 503 and a reference, no address; and calls succeed once the database is back."""
    write_files("database-pool.md", tmp_path)
    monkeypatch.setenv("DATABASE_URL", own_postgres.url())
    loaded("make_tables", tmp_path, monkeypatch)
    with (
        serving(tmp_path / "orders.py", "--workers", "2") as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        order = {"item": "tea", "count": 1}
        ordered = client.post("/functions/order", json=order)
        own_postgres.stop()

        failed = client.post("/functions/order", json=order)
        probe, ready = client.get("/ready"), client.get("/readyz")

        own_postgres.start()
        statuses: list[int] = []
        while not statuses or (statuses[-1] != 200 and len(statuses) < 100):
            statuses.append(client.post("/functions/find_order", json={"id": 1}).status_code)

    assert ordered.json() == {"id": 1, **order}
    assert failed.status_code == 503
    assert failed.headers["X-Error-Code"] == "UNAVAILABLE"
    assert "127.0.0.1" not in failed.text
    assert (probe.status_code, ready.status_code) == (503, 200)
    assert statuses[-1] == 200
    assert set(statuses) <= {200, 503}


SLEEP = "SELECT pg_sleep(600)"
SLEEPING = f"SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = '{SLEEP}'"


async def wait_for_statements(connection: Any, count: int) -> None:
    while True:
        found = await connection.execute(SLEEPING)
        if len(await found.fetchall()) == count:
            return


def test_a_cancelled_call_ends_its_statement_and_gives_its_connection_back(
    state_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files("database-pool.md", tmp_path)
    monkeypatch.setenv("DATABASE_URL", state_url)
    orders: Any = loaded("orders", tmp_path, monkeypatch)

    async def sleep(db: Any) -> None:
        await db.execute("SET statement_timeout = 0")
        await db.execute(SLEEP)

    sleep.__annotations__["db"] = orders.Db
    orders.app.add_tool(sleep)

    async def main() -> dict[str, int]:
        async with orders.app.running(), asyncio.timeout(60):
            pool = orders.app.state
            async with pool.connection() as other:
                await other.set_autocommit(True)
                call = asyncio.ensure_future(orders.app.call("sleep"))
                await wait_for_statements(other, 1)
                call.cancel()
                await asyncio.wait([call])
                await wait_for_statements(other, 0)
                await other.set_autocommit(False)
            found: dict[str, int] = pool.get_stats()
            # The pool may be making one more, in the background.
            while found["pool_available"] != found["pool_size"]:
                await asyncio.sleep(0)
                found = pool.get_stats()
            return found

    stats = asyncio.run(main())

    assert stats["pool_available"] >= 2
    assert stats.get("returns_bad", 0) == 0


def test_a_cancelled_call_closes_its_request_to_the_upstream_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files("upstream-api.md", tmp_path)
    rates: Any = loaded("rates", tmp_path, monkeypatch)

    async def main() -> bytes:
        asked, closed = asyncio.Event(), asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            rest.append(await reader.read())
            closed.set()
            writer.close()

        rest: list[bytes] = []
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("RATES_API", f"http://127.0.0.1:{port}")
        async with rates.app.running():
            call = asyncio.ensure_future(rates.app.call("rate", currency="NOK"))
            await asyncio.wait_for(asked.wait(), 30)
            call.cancel()
            await asyncio.wait_for(closed.wait(), 30)
        server.close()
        return rest[0]

    assert asyncio.run(main()) == b""


def test_an_upload_that_breaks_off_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_files("files-and-images.md", tmp_path)
    monkeypatch.setenv("FILES", str(tmp_path / "files"))
    files: Any = loaded("files", tmp_path, monkeypatch)
    until = "99999999999"
    query = f"until={until}&signature={files.signature('PUT', 'big.bin', until)}"
    scope = {
        **{"type": "http", "method": "PUT", "path": "/files/big.bin", "root_path": ""},
        **{"query_string": query.encode(), "headers": [(b"host", b"127.0.0.1")]},
        **{"server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "scheme": "http"},
    }
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"x" * 1000, "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: object) -> None:
        """Nobody reads it."""

    asyncio.run(files.app.asgi()(scope, receive, send))

    assert not messages
    assert (tmp_path / "files").is_dir()
    assert list((tmp_path / "files").iterdir()) == []
    assert not caplog.records
