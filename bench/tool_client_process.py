"""One client; each line on its stdin makes it send requests, and print their CPU time."""

from __future__ import annotations

import asyncio
import importlib.machinery
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvloop

REQUESTS = 300
BODY = b'{"x":7,"y":3}'
Send = Callable[[], Awaitable[bytes]]


@asynccontextmanager
async def httpx(port: int) -> AsyncIterator[Send]:
    import httpx

    async with httpx.AsyncClient() as client:

        async def send() -> bytes:
            return (await client.post(f"http://127.0.0.1:{port}/", content=BODY)).content

        yield send


@asynccontextmanager
async def httpx_without_sniffio(port: int) -> AsyncIterator[Send]:
    _hide("sniffio")
    async with httpx(port) as send:
        yield send


@asynccontextmanager
async def aiohttp(port: int) -> AsyncIterator[Send]:
    import aiohttp

    async with aiohttp.ClientSession() as session:

        async def send() -> bytes:
            async with session.post(f"http://127.0.0.1:{port}/", data=BODY) as response:
                return await response.read()

        yield send


@asynccontextmanager
async def redis_py(port: int) -> AsyncIterator[Send]:
    """Without hiredis, which redis-py uses if it is installed."""
    _hide("hiredis")
    async with redis_py_with_hiredis(port) as send:
        yield send


@asynccontextmanager
async def redis_py_with_hiredis(port: int) -> AsyncIterator[Send]:
    from redis.asyncio import Redis

    async with Redis(port=port, protocol=2) as client:

        async def send() -> bytes:
            found = await client.get("name")
            return found if isinstance(found, bytes) else b""

        yield send


def _hide(package: str) -> None:
    """Let imports of a package search for it in vain, as if it were not installed."""
    find = importlib.machinery.PathFinder.find_spec

    def find_others(name: str, *arguments: Any) -> Any:
        found = find(name, *arguments)
        return None if name.partition(".")[0] == package else found

    importlib.machinery.PathFinder.find_spec = find_others  # type: ignore[assignment]  # hides it


async def _serve(name: str, port: int, at_once: int) -> None:
    async with CLIENTS[name](port) as send:
        await asyncio.gather(*(_send_all(send, 1) for _ in range(at_once)))
        print("ready", flush=True)
        each = REQUESTS // at_once
        while await asyncio.to_thread(sys.stdin.readline):
            began = time.process_time()
            await asyncio.gather(*(_send_all(send, each) for _ in range(at_once)))
            print((time.process_time() - began) / (each * at_once), flush=True)


async def _send_all(send: Send, count: int) -> None:
    for _ in range(count):
        found = await send()
        if b"10" not in found:
            raise RuntimeError(f"a wrong answer: {found!r}")


CLIENTS = {
    each.__name__: each
    for each in (httpx, httpx_without_sniffio, aiohttp, redis_py, redis_py_with_hiredis)
}

if __name__ == "__main__":
    name, port, at_once = sys.argv[1:]
    uvloop.run(_serve(name, int(port), int(at_once)))
