"""Calls of our client to a server of the official SDK 1.x, which has an environment of its own.

`make clientconformance` runs them over stdio and HTTP; the environment is in `.clients`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.__main__ import install
from tests.clients.packages import Client
from tests.ports import listening

from answerback import connect

SDK_1 = Client("server of mcp 1.x", "", pip=("mcp==1.30.0",))
SOURCE = """
import asyncio
import sys
from pathlib import Path

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("sdk 1", host="127.0.0.1", port=int(sys.argv[2]))


class Nights(BaseModel):
    nights: int


@server.tool()
def add(x: int, y: int) -> int:
    return x + y


@server.tool()
def fail() -> str:
    raise ValueError("there is no such city")


@server.tool()
async def book(ctx: Context) -> str:
    answer = await ctx.elicit("How many nights?", Nights)
    return f"booked {answer.data.nights} nights"


@server.tool()
async def steps(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half")
    await ctx.report_progress(2, 2, "whole")
    return "done"


@server.tool()
async def wait() -> str:
    try:
        await asyncio.sleep(60)
    finally:
        Path(sys.argv[3]).write_text("cancelled")


server.run(sys.argv[1])
"""
CALLED = {
    "version": "2025-11-25",
    "tools": ["add", "fail", "book", "steps", "wait"],
    "data": 3,
    "error": True,
    "wrong argument": True,
    "question": "booked 3 nights",
    "progress": [(1, "half"), (2, "whole")],
    "cancelled": True,
    "time-out": "TIMED_OUT",
    "after all": 7,
}
"""The result of `call_sdk_1` if all goes well."""


@contextmanager
def _target(wire: str, python: str, cancelled: Path) -> Iterator[Any]:
    if wire == "stdio":
        yield [python, "-c", SOURCE, wire, "0", str(cancelled)]
        return
    words = [python, "-c", SOURCE, "streamable-http"]
    log = cancelled.with_name("log")
    with listening(lambda port: [*words, str(port), str(cancelled)], log) as server:
        yield f"http://127.0.0.1:{server.port}/mcp"


async def _calls(target: Any, cancelled: Path) -> dict[str, Any]:
    seen: list[tuple[float, str | None]] = []
    async with connect(target, elicit=lambda request: {"nights": 3}, timeout=60) as server:
        noted = server.options(progress=lambda each: seen.append((each.progress, each.message)))
        found: dict[str, Any] = {
            "version": server.info.version.name,
            "tools": [tool.name for tool in await server.tools()],
            "data": (await server.call("add", x=1, y=2)).data,
            "error": _says(await server.call("fail"), "there is no such city"),
            "wrong argument": _says(await server.call("add", x="one", y=2), "x"),
            "question": (await server.call("book")).data,
        }
        await noted.call("steps")
        found["progress"] = seen
        waiting = asyncio.create_task(server.call("wait"))
        await server.call("add", x=1, y=1)
        waiting.cancel()
        await asyncio.wait([waiting])
        async with asyncio.timeout(60):
            while not cancelled.exists():
                await server.call("add", x=1, y=1)
        found["cancelled"] = True
        late = await server.options(timeout=0.5).call("wait")
        found["time-out"] = late.error and late.error.code
        found["after all"] = (await server.call("add", x=3, y=4)).data
    return found


def _says(reply: Any, words: str) -> bool:
    return reply.error is not None and words in reply.error.message


def call_sdk_1(wire: str, folder: Path) -> dict[str, Any]:
    """What our client found at the server, over `stdio` or `http`."""
    python = install(SDK_1) / "bin" / "python"
    cancelled = folder / f"cancelled-{wire}"
    with _target(wire, str(python), cancelled) as target:
        return asyncio.run(_calls(target, cancelled))
