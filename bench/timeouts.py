"""How long a call takes that times out, as a multiple of its time-out."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from answerback import connect
from answerback.resilience import Retry

from .report import Figure
from .rest import serving
from .timeouts_app import SECONDS, app

ROUNDS = 3
LIMIT = 1.1
STDIO = [sys.executable, "bench/timeouts_app.py", "mcp"]
POLICIES: dict[str, dict[str, Any]] = {
    "time-out": {"timeout": SECONDS},
    "two attempts": {"timeout": SECONDS / 2, "retry": Retry(2, wait=lambda _: 0.0)},
    "deadline": {"timeout": 60, "retry": Retry(9, wait=lambda _: 0.0, deadline=SECONDS)},
}


def measure() -> list[Figure]:
    with serving("bench.timeouts_app:site") as port:
        targets = {"memory": app, "stdio": STDIO, "HTTP": f"http://127.0.0.1:{port}/mcp"}
        return [
            *(asyncio.run(_of_tool(name)) for name in ("limited", "limited_in_thread")),
            *(
                figure
                for wire, target in targets.items()
                for figure in asyncio.run(_of_client(wire, target))
            ),
        ]


async def _of_tool(name: str) -> Figure:
    return await _figure(f"tool `{name}` in process", lambda: app.call(name))


async def _of_client(wire: str, target: Any) -> list[Figure]:
    async with connect(target) as server:
        await server.tools()
        return [
            await _figure(f"client, {wire}, {policy}", server.options(**options).call, "wait")
            for policy, options in POLICIES.items()
        ]


async def _figure(what: str, call: Callable[..., Awaitable[Any]], *arguments: str) -> Figure:
    """The least of several calls: other work of the machine makes a call longer, never shorter."""
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        reply = await call(*arguments)
        least = min(least, time.perf_counter() - began)
        if reply.error is None or reply.error.code != "TIMED_OUT":
            raise RuntimeError(f"the call did not time out: {reply}")
    detail = f"{least * 1e3:.0f} ms of {SECONDS * 1e3:.0f} ms"
    return Figure(f"{what}, times its time-out", least / SECONDS, LIMIT, True, detail)
