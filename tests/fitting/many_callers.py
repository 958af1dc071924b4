"""Ten thousand callers, each with its own address, whose replies of 30 kB are kept.

Prints how many can be read afterwards, and by how much the process has grown.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from tests.fitting.kept_app import Report, report

from answerback import App, Limits
from answerback.options import ReplyLimits

CALLERS = 10_000
ROWS = report(150)
app = App("many", limits=Limits(replies=ReplyLimits(total_bytes=64 * 1024 * 1024)))


@app.tool(budget=1_000)
async def read_rows() -> Report:
    return ROWS


async def post(asgi: Any, address: str, method: str, **params: Any) -> Any:
    """Send a stateless request from *address*; return the result, or None for an error."""
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": params.get("name") or params["uri"],
    }
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": (address, 1),
        "server": ("127.0.0.1", 80),
    }
    parts = [{"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}]
    sent: list[bytes] = []

    async def receive() -> Any:
        return parts.pop() if parts else await asyncio.Event().wait()

    async def send(event: Any) -> None:
        sent.append(event.get("body", b""))

    await asgi(scope, receive, send)
    return json.loads(b"".join(sent)).get("result")


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def main() -> None:
    asgi = app.asgi()

    async def kept(number: int) -> str:
        address = f"10.0.{number // 250}.{number % 250}"
        result = await post(asgi, address, "tools/call", name="read_rows", arguments={})
        [uri] = [block["uri"] for block in result["content"] if block["type"] == "resource_link"]
        return str(uri)

    async def is_readable(uri: str) -> bool:
        return await post(asgi, "10.9.9.9", "resources/read", uri=f"{uri}?path=total") is not None

    await kept(0)
    before = resident()
    uris = [await kept(number) for number in range(1, CALLERS)]
    memory = resident() - before
    readable = 0
    while uris and await is_readable(uris.pop()):
        readable += 1
    found = {
        "sent": CALLERS,
        "size": len(json.dumps(ROWS, ensure_ascii=False).encode()),
        "readable": readable,
        "memory": memory,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
