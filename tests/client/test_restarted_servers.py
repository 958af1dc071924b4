"""HTTP servers that are killed, restarted or stopped, and calls that the client cancels."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import SERVED
from tests.conftest import Server, serving

from answerback import connect
from answerback.resilience import Retry


class Runs:
    """The file in which the server notes what it has run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def words(self) -> list[str]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return sorted(line.split()[0] for line in lines)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs(tmp_path / "runs")
    monkeypatch.setenv("SERVED_RUNS", str(found.path))
    return found


@pytest.fixture
def served(runs: Runs) -> Iterator[Server]:
    with serving(SERVED) as server:
        yield server


class Begun:
    """Counts the calls that have sent progress, that is, have begun."""

    def __init__(self) -> None:
        self._begun = asyncio.Semaphore(0)

    def __call__(self, progress: Any) -> None:
        self._begun.release()

    async def wait(self, calls: int = 1) -> None:
        async with asyncio.timeout(60):
            for _ in range(calls):
                await self._begun.acquire()


def test_a_server_killed_in_the_middle_of_calls_is_used_again_and_no_effect_is_doubled(
    served: Server, runs: Runs, version: str
) -> None:
    changes: list[Any] = []

    async def run() -> list[Any]:
        retry = Retry(attempts=300, wait=lambda attempt: 0.2, deadline=60)
        url = f"{served.url}/mcp"
        async with connect(
            url, version=version, on_change=changes.append, timeout=60, retry=retry
        ) as server:
            await server.subscribe("note://a")
            begun = Begun()
            noted = server.options(progress=begun)
            calls = [asyncio.create_task(noted.call(name)) for name in ("begin", "begin_safely")]
            await begun.wait(2)
            served.process.kill()
            served.process.wait(60)
            with serving(SERVED, "--port", str(served.port)):
                replies = [await each for each in calls]
                replies.append(await server.call("record"))
                async with asyncio.timeout(60):
                    while not changes:
                        await server.call("touch", uri="note://a")
            return replies

    unsafe, safe, recorded = asyncio.run(run())

    assert (unsafe.error.code, unsafe.error.details) == ("UNAVAILABLE", {"may_have_run": True})
    assert safe.ok, safe.error
    assert recorded.ok, recorded.error
    assert runs.words == ["begin", "record", "safely", "safely"]
    assert {(change.kind, change.uri) for change in changes} == {("resource", "note://a")}


def test_changes_are_told_after_a_restart_though_the_client_sends_no_request(
    served: Server, version: str
) -> None:
    async def run() -> list[Any]:
        changes: asyncio.Queue[Any] = asyncio.Queue()
        url = f"{served.url}/mcp"
        async with connect(url, version=version, on_change=changes.put_nowait) as server:
            await server.subscribe("note://a")
            served.process.kill()
            served.process.wait(60)
            with serving(SERVED, "--port", str(served.port)):
                async with asyncio.timeout(60), connect(url) as other:
                    while changes.empty():
                        await other.call("touch", uri="note://a")
                found = await changes.get()
                return [found.kind, found.uri]

    found = asyncio.run(run())

    assert found == ["resource", "note://a"]


def test_a_kept_list_is_read_again_after_a_restart(served: Server) -> None:
    """The server tells when its list changes, but not what has changed while it was down."""

    async def run() -> list[list[str]]:
        async with connect(f"{served.url}/mcp", version="2025-11-25") as server:
            await server.call("grow")
            lists = [await server.tools()]
            served.process.kill()
            served.process.wait(60)
            with serving(SERVED, "--port", str(served.port)):
                await server.call("record")
                lists.append(await server.tools())
        return [[tool.name for tool in each if tool.name.startswith("grown")] for each in lists]

    before, after = asyncio.run(run())

    assert len(before) == 1
    assert after == []


def test_a_time_out_holds_while_the_server_stands_still(
    served: Server, runs: Runs, version: str
) -> None:
    async def run() -> tuple[Any, float, Any]:
        async with connect(f"{served.url}/mcp", version=version) as server:
            await server.tools()
            os.kill(served.process.pid, signal.SIGSTOP)
            try:
                began = time.monotonic()
                late = await server.options(timeout=1).call("record")
                seconds = time.monotonic() - began
            finally:
                os.kill(served.process.pid, signal.SIGCONT)
            return late, seconds, await server.call("add", x=1, y=1)

    late, seconds, after = asyncio.run(run())

    assert (late.error.code, late.error.details) == ("TIMED_OUT", {"may_have_run": True})
    assert seconds >= 1.0
    assert after.ok, after.error
    assert runs.words.count("record") <= 1


@pytest.mark.parametrize(
    ("version", "told"), [("2025-11-25", ["notifications/cancelled"]), ("2026-07-28", [])]
)
def test_a_call_over_http_that_is_cancelled_is_cancelled_at_the_server(
    served: Server, runs: Runs, version: str, told: list[str]
) -> None:
    """A server of 2026-07-28 sees the end of the stream, an older one a notification."""
    sent: list[str] = []

    def tap(direction: str, frame: bytes) -> None:
        if direction == "sent":
            sent.append(json.loads(frame)["method"])

    async def run() -> None:
        async with connect(f"{served.url}/mcp", version=version, tap=tap) as server:
            begun = Begun()
            call = asyncio.create_task(server.options(progress=begun).call("wait", seconds=60))
            await begun.wait()
            call.cancel()
            await asyncio.wait([call])
            async with asyncio.timeout(60):
                while not runs.words:
                    await server.call("add", x=1, y=1)

    asyncio.run(run())

    assert runs.words == ["cancelled"]
    assert [method for method in sent if "cancelled" in method] == told
