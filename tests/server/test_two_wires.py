"""Two wires that serve one app in one process: one lifespan, two runtimes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from tests.records.support import MemorySink
from tests.serving import ServedApp, until

from answerback import App, Context, connect
from answerback.calls.runtime import runtime_on_loop
from answerback.records import Records
from answerback.registry.declarations import registry_of
from answerback.server.asgi.application import AsgiApp
from answerback.server.http.server_options import WebOptions
from answerback.server.process import Stdout
from answerback.server.stdio import StdioServer
from answerback.tasks.sqlite_store import SQLiteStore

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "value"}}


@pytest.fixture(autouse=True)
def _the_process_keeps_its_signal_handlers() -> Iterator[None]:
    """Two servers that end in the order in which they began leave the first one's handlers."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def shared_app(kind: str, events: list[str]) -> App:
    """An app whose lifespan, async or plain, writes when it opens and closes."""

    @asynccontextmanager
    async def on_loop() -> AsyncIterator[str]:
        events.append("open")
        yield "state"
        events.append("close")

    @contextmanager
    def plain() -> Iterator[str]:
        events.append("open")
        yield "state"
        events.append("close")

    app = App("shared", lifespan=on_loop if kind == "async" else plain)

    @app.tool
    def value(ctx: Context[str]) -> str:
        return ctx.state

    return app


class HttpServer:
    """uvicorn with an ASGI application, on a free port."""

    def __init__(self, application: AsgiApp) -> None:
        config = uvicorn.Config(application, log_level="warning", lifespan="on")
        self._server = uvicorn.Server(config)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def __aenter__(self) -> HttpServer:
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        await until(lambda: self._server.started or self._task.done())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.should_exit = True
        await self._task

    async def value(self) -> Any:
        async with httpx.AsyncClient(base_url=self.url, timeout=30) as client:
            return (await client.post("/functions/value")).json()


class OverPipes:
    """The app over stdio, in a thread of this process."""

    def __init__(self, app: App) -> None:
        source, self._write = os.pipe()
        self._read, out = os.pipe()
        self._answers = os.fdopen(self._read)
        server = StdioServer(registry_of(app), Stdout(out), source)
        self._thread = threading.Thread(target=server.run)

    def __enter__(self) -> OverPipes:
        self._thread.start()
        self.ask(INITIALIZE)
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._write)
        self._thread.join(60)
        self._answers.close()

    def ask(self, message: dict[str, Any]) -> Any:
        os.write(self._write, json.dumps(message).encode() + b"\n")
        return json.loads(self._answers.readline())

    def value(self) -> Any:
        return self.ask(CALL)["result"]["structuredContent"]


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize("ends_first", [0, 1])
def test_the_lifespan_runs_once_and_ends_with_the_last_of_two_servers(
    kind: str, ends_first: int
) -> None:
    events: list[str] = []
    app = shared_app(kind, events)

    async def serve() -> None:
        servers = [HttpServer(app.asgi()), HttpServer(app.asgi())]
        for server in servers:
            await server.__aenter__()
        events.append((await servers[0].value())["result"])
        await servers.pop(ends_first).__aexit__()
        events.append((await servers[0].value())["result"])
        await servers[0].__aexit__()

    asyncio.run(serve())

    assert events == ["open", "state", "state", "close"]


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_it_ends_with_the_server_where_a_running_app_is_left_before(kind: str) -> None:
    events: list[str] = []
    app = shared_app(kind, events)

    async def serve() -> None:
        server = HttpServer(app.asgi())
        async with app.running():
            await server.__aenter__()
        events.append((await server.value())["result"])
        await server.__aexit__()

    asyncio.run(serve())

    assert events == ["open", "state", "close"]


def test_it_ends_with_a_running_app_where_the_server_ends_before() -> None:
    events: list[str] = []
    app = shared_app("async", events)

    async def serve() -> None:
        async with app.running():
            async with HttpServer(app.asgi()) as server:
                events.append((await server.value())["result"])
            async with connect(app) as client:
                events.append(str((await client.call("value")).data))
            events.append("still open")

    asyncio.run(serve())

    assert events == ["open", "state", "state", "still open", "close"]


def test_a_connection_in_memory_keeps_it_open_after_the_server_has_ended() -> None:
    events: list[str] = []
    app = shared_app("async", events)

    async def serve() -> None:
        server = HttpServer(app.asgi())
        await server.__aenter__()
        async with connect(app) as client:
            await server.__aexit__()
            events.append(str((await client.call("value")).data))

    asyncio.run(serve())

    assert events == ["open", "state", "close"]


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize("ends_first", ["stdio", "http"])
@pytest.mark.parametrize("starts_first", ["stdio", "http"])
def test_stdio_and_http_share_one_lifespan(kind: str, ends_first: str, starts_first: str) -> None:
    events: list[str] = []
    app = shared_app(kind, events)

    async def serve() -> None:
        http, stdio = HttpServer(app.asgi()), OverPipes(app)
        if starts_first == "http":
            await http.__aenter__()
        await asyncio.to_thread(stdio.__enter__)
        if starts_first == "stdio":
            await http.__aenter__()
        events.append((await asyncio.to_thread(stdio.value))["result"])
        events.append((await http.value())["result"])
        if ends_first == "stdio":
            await asyncio.to_thread(stdio.__exit__)
            events.append((await http.value())["result"])
            await http.__aexit__()
        else:
            await http.__aexit__()
            events.append((await asyncio.to_thread(stdio.value))["result"])
            await asyncio.to_thread(stdio.__exit__)

    asyncio.run(serve())

    assert events == ["open", "state", "state", "state", "close"]


def test_a_call_outside_of_calls_uses_the_wire_that_still_serves() -> None:
    app = App("served")
    app.add_tool(lambda: 1, name="value")
    sink = MemorySink()
    records = Records(sink)

    async def serve() -> None:
        recorded = AsgiApp(runtime_on_loop(registry_of(app), records=records), WebOptions())
        async with HttpServer(recorded):
            other = app.asgi()
            async with HttpServer(other):
                await app.call("value")
            await app.call("value")

    asyncio.run(serve())
    records.close()

    assert [event.tool for event in sink.replies] == ["value"]


@pytest.mark.parametrize("is_stored", [True, False])
def test_wires_share_tasks_only_through_a_store(is_stored: bool, tmp_path: Path) -> None:
    app = ServedApp("jobs")
    app.add_tool(lambda: 1, name="one", task="optional")
    if is_stored:
        app.task_store = SQLiteStore(tmp_path / "tasks.db")

    async def statuses() -> list[int]:
        first, second = HttpServer(app.asgi()), HttpServer(app.asgi())
        async with first, second, httpx.AsyncClient(timeout=30) as client:
            headers = {"Prefer": "respond-async"}
            made = await client.post(f"{first.url}/functions/one", headers=headers)
            path = httpx.URL(made.headers["location"]).path
            found = [await client.get(each.url + path) for each in (first, second)]
            return [each.status_code for each in found]

    assert asyncio.run(statuses()) == [200, 200 if is_stored else 404]
