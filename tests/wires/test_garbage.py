"""What a call leaves behind: what only the collector can take away makes every call slower."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from answerback import App, Context

CALLS = 50
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
STATELESS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
STATEFUL = {"mcp-protocol-version": "2025-11-25"}


def _app() -> App:
    app = App("calls")

    @app.tool(inline=True)
    def here(x: int) -> int:
        return x

    @app.tool
    def there(x: int) -> int:
        return x

    @app.tool
    async def later(x: int, ctx: Context) -> int:
        await asyncio.sleep(0)
        return x if ctx.tool else 0

    return app


def _message(name: str, **more: Any) -> bytes:
    params = {"name": name, "arguments": {"x": 1}, **more}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


async def _post(site: Any, path: str, body: bytes, headers: dict[str, str]) -> int:
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    pairs = {"host": "localhost", "content-type": "application/json", **headers}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in pairs.items()],
    }
    await site(scope, receive, send)
    status: int = said[0]["status"]
    return status


@contextmanager
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("tool", ["here", "there", "later"])
@pytest.mark.parametrize("wire", ["rest", "stateful", "stateless"])
def test_a_call_leaves_nothing_to_the_collector(wire: str, tool: str) -> None:
    site = _app().asgi()
    jobs: dict[str, tuple[str, bytes, dict[str, str]]] = {
        "rest": (f"/functions/{tool}", b'{"x":1}', {}),
        "stateful": ("/mcp", _message(tool), STATEFUL),
        "stateless": ("/mcp", _message(tool, _meta=META), {**STATELESS, "mcp-name": tool}),
    }

    async def left() -> int:
        assert await _post(site, *jobs[wire]) == 200
        with _without_collector():
            for _ in range(CALLS):
                await _post(site, *jobs[wire])
            return gc.collect()

    # A few may be of what else the loop does meanwhile.
    assert asyncio.run(left()) < CALLS
