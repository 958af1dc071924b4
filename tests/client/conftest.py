"""The transports to the served app, and the file of its runs."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import load_app, serving

SERVED = Path(__file__).parent / "served_app.py"
STDIO = [sys.executable, str(SERVED), "mcp"]

_STUB = """
import json, sys
schema = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}
tool = {"name": "weather", "inputSchema": {"type": "object"}, "outputSchema": schema}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    common = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "private"}
    result = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [tool, {"no name": 1}]},
        "tools/call": {"content": [], "structuredContent": {"degrees": "warm"}},
    }[asked["method"]]
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {**result, **common}}))
    sys.stdout.flush()
"""
STUB = [sys.executable, "-I", "-S", "-c", _STUB]
"""A small server that starts at once; the data of its tool breaks the output schema."""


@contextmanager
def http_server(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@asynccontextmanager
async def stream_server(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serve connections with *serve*; gives the port, and ends all connections at the end."""
    tasks: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=60)
        await asyncio.sleep(0)


@pytest.fixture(scope="session")
def served_url() -> Iterator[str]:
    with serving(SERVED) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(params=["memory", "stdio", "http"])
def target(request: pytest.FixtureRequest, served_url: str) -> Any:
    """The same app over each transport."""
    match request.param:
        case "memory":
            return load_app(SERVED)
        case "stdio":
            return STDIO
    return served_url


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found
