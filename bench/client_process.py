"""One client: ours, the official one or FastMCP's. Each line on stdin makes it call many times.

It prints the CPU time of one call, that of its server not included.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

CALLS = 100
ARGUMENTS = {"x": 7, "y": 3}
SERVER = ["bench/apps.py", "mcp"]


async def ours(url: str) -> None:
    from answerback import connect

    async with connect(url or [sys.executable, *SERVER], env={"PYTHONPATH": "src"}) as server:

        async def call() -> Any:
            reply = await server.call("add_inline", ARGUMENTS)
            return reply.data

        await _serve(call, 10)


async def official(url: str) -> None:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    child = StdioServerParameters(command=sys.executable, args=SERVER, env={"PYTHONPATH": "src"})
    async with Client(url or child) as client:

        async def call() -> Any:
            result = await client.call_tool("add_inline", ARGUMENTS)
            return result.structured_content

        await _serve(call, {"result": 10})


async def fast(url: str) -> None:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    child = StdioTransport(sys.executable, SERVER, env={"PYTHONPATH": "src"})
    async with Client(url or child) as client:

        async def call() -> Any:
            result = await client.call_tool("add_inline", ARGUMENTS)
            return result.structured_content

        await _serve(call, {"result": 10})


async def _serve(call: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    assert await call() == wanted
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        began = time.process_time()
        for _ in range(CALLS):
            found = await call()
        print((time.process_time() - began) / CALLS, flush=True)
        assert found == wanted, found


if __name__ == "__main__":
    asyncio.run({"ours": ours, "mcp": official, "fastmcp": fast}[sys.argv[1]](sys.argv[2]))
