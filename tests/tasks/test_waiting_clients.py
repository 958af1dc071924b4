"""Clients that wait for a task: those that disconnect are given up, and their number is bounded."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import MutableMapping
from pathlib import Path
from time import monotonic, time
from typing import Any

import pytest
from tests.serving import ServedApp
from tests.tasks.task_client import RpcFailure, TaskClient, run_with

from answerback import App
from answerback.core.limits import TaskLimits
from answerback.tasks.sqlite_store import SQLiteStore
from answerback.tasks.task_record import TaskRecord

HEADERS = [(b"content-type", b"application/json"), (b"mcp-protocol-version", b"2025-11-25")]
ALLOWED = 100
"""The requests that may wait for one task."""


class WaitingClient:
    """Waits for a task in memory, and can disconnect; *session* is its session id."""

    def __init__(self, asgi: Any, message: dict[str, Any], session: bytes = b"") -> None:
        self._messages = [{"type": "http.request", "body": json.dumps(message).encode()}]
        self._disconnected = asyncio.Event()
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        headers = [*HEADERS, (b"mcp-session-id", session)] if session else HEADERS
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
        self.request = asyncio.create_task(asgi(scope, self._receive, self._send))

    def disconnect(self) -> None:
        self._disconnected.set()

    async def _receive(self) -> dict[str, Any]:
        if not self._messages:
            await self._disconnected.wait()
            return {"type": "http.disconnect"}
        return self._messages.pop()

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        self.headers |= dict(message.get("headers", ()))
        self.body += message.get("body", b"")


def request(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.parametrize("kind", ["without a session", "with a session", "that can be asked"])
def test_a_client_that_disconnects_no_longer_waits_for_its_task(kind: str) -> None:
    app = App("jobs")
    finish = asyncio.Event()

    @app.tool(task="optional")
    async def job() -> str:
        await finish.wait()
        return "done"

    async def steps() -> Any:
        asgi = app.asgi()
        session = b""
        if kind != "without a session":
            can: Any = {"elicitation": {}} if kind == "that can be asked" else {}
            hello = request("initialize", protocolVersion="2025-11-25", capabilities=can)
            client = WaitingClient(asgi, hello)
            await client.request
            session = client.headers[b"mcp-session-id"]
        made = WaitingClient(asgi, request("tools/call", name="job", task={}), session)
        await made.request
        id = json.loads(made.body)["result"]["task"]["taskId"]
        gone = [
            WaitingClient(asgi, request("tasks/result", number, taskId=id), session)
            for number in range(ALLOWED)
        ]
        for client in gone:
            client.disconnect()
        await asyncio.wait({client.request for client in gone})
        last = WaitingClient(asgi, request("tasks/result", ALLOWED, taskId=id), session)
        await asyncio.sleep(0)
        finish.set()
        await last.request
        await asgi.stop()
        return last.body

    body = asyncio.run(asyncio.wait_for(steps(), 30))
    assert b'"done"' in body


def test_more_requests_than_a_task_may_have_are_refused_for_the_moment() -> None:
    app = App("jobs")
    finish = asyncio.Event()

    @app.tool(task="optional")
    async def job() -> str:
        await finish.wait()
        return "done"

    async def steps(client: TaskClient) -> Any:
        id = await client.create("job")
        waiting = [
            asyncio.create_task(client.old_request("tasks/result", taskId=id))
            for _ in range(ALLOWED + 1)
        ]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finish.set()
        await asyncio.wait(waiting)
        return done, waiting

    done, waiting = run_with(app, steps)
    failures = [each.exception() for each in waiting if each.exception() is not None]
    assert failures == [each.exception() for each in done]
    [refused] = failures
    assert isinstance(refused, RpcFailure)
    assert refused.data["code"] == "UNAVAILABLE"
    assert refused.data["retryable"] is True


class CountedLooks(SQLiteStore):
    """Counts the looks for other processes' changes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, durable=False)
        self._looks = threading.Semaphore(0)

    def version(self) -> int:
        self._looks.release()
        return super().version()

    async def seconds_of(self, looks: int) -> float:
        began = monotonic()
        for _ in range(looks):
            await asyncio.to_thread(self._looks.acquire)
        return monotonic() - began


@pytest.mark.parametrize("why", ["a task runs", "a client waits"])
def test_a_server_looks_often_into_its_task_file_only_while_it_must(
    tmp_path: Path, why: str
) -> None:
    app = ServedApp("jobs")
    store = app.task_store = CountedLooks(tmp_path / "tasks.db")
    finish = asyncio.Event()

    @app.tool(task="optional")
    async def job() -> str:
        await finish.wait()
        return "done"

    async def steps(client: TaskClient) -> Any:
        now = time()
        elsewhere = TaskRecord(
            id="elsewhere",
            tool="job",
            arguments=b"{}",
            created=now,
            changed=now,
            worker="1/another machine/1",
            lease=now + 600,
        )
        other = SQLiteStore(tmp_path / "tasks.db")
        other.add(elsewhere, TaskLimits())
        idle = await store.seconds_of(3)
        waiting = None
        if why == "a task runs":
            id = await client.create("job")
        else:
            id = "elsewhere"
            waiting = asyncio.create_task(client.old_request("tasks/result", taskId=id))
        busy = await store.seconds_of(170)
        await client.request("tasks/cancel", taskId=id)
        if waiting is not None:
            await asyncio.wait([waiting])
        other.close()
        return idle, busy

    idle, busy = run_with(app, steps)
    assert idle > 1.5
    assert busy < 15
