"""A call creates no reference cycles, which only the garbage collector could free."""

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
    def inline_tool(x: int) -> int:
        return x

    @app.tool
    def thread_tool(x: int) -> int:
        return x

    @app.tool
    async def async_tool(x: int, ctx: Context) -> int:
        await asyncio.sleep(0)
        return x if ctx.tool else 0

    return app


def _message(name: str, **more: Any) -> bytes:
    params = {"name": name, "arguments": {"x": 1}, **more}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


async def _post(application: Any, path: str, body: bytes, headers: dict[str, str]) -> int:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    pairs = {"host": "localhost", "content-type": "application/json", **headers}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in pairs.items()],
    }
    await application(scope, receive, send)
    status: int = sent[0]["status"]
    return status


@contextmanager
def _without_garbage_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("tool", ["inline_tool", "thread_tool", "async_tool"])
@pytest.mark.parametrize("wire", ["rest", "stateful", "stateless"])
def test_a_call_creates_no_reference_cycles(wire: str, tool: str) -> None:
    application = _app().asgi()
    requests: dict[str, tuple[str, bytes, dict[str, str]]] = {
        "rest": (f"/functions/{tool}", b'{"x":1}', {}),
        "stateful": ("/mcp", _message(tool), STATEFUL),
        "stateless": ("/mcp", _message(tool, _meta=META), {**STATELESS, "mcp-name": tool}),
    }

    async def count_cycles() -> int:
        assert await _post(application, *requests[wire]) == 200
        with _without_garbage_collector():
            for _ in range(CALLS):
                await _post(application, *requests[wire])
            return gc.collect()

    # The event loop itself may create a few.
    assert asyncio.run(count_cycles()) < CALLS
