"""The CPU time of a bare POST in our own HTTP client and in others, and of a whole call.

The other clients are compared by what a whole call would cost with them: our call, with our POST
taken out and theirs put in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import httpcore
import httpx2

from answerback import connect
from answerback.http1.http_pool import HttpPool

from .report import Figure
from .rest import UVICORNS, serving

POSTS = 200
ROUNDS = 15
LIMIT = 1.5
BODY = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
    b'"params":{"name":"add","arguments":{"x":7,"y":3}}}'
)
HEADERS = [("content-type", "application/json"), ("accept", "application/json")]

Post = Callable[[], Awaitable[bytes]]


def measure() -> list[Figure]:
    with serving("bench.bare_mcp:app", UVICORNS) as bare, serving("bench.site:site") as site:
        seconds = asyncio.run(_seconds(f"http://127.0.0.1:{bare}/mcp", site))
    call, own = seconds.pop("call"), seconds.pop("own")
    return [
        Figure(
            f"a call over HTTP with {name}, times our own",
            (call - own + theirs) / call,
            LIMIT,
            False,
            f"POST {theirs * 1e6:.0f} against {own * 1e6:.0f} µs; "
            f"call {call * 1e6:.0f} µs, {(call - own) * 1e6:.0f} outside HTTP",
        )
        for name, theirs in seconds.items()
    ]


async def _seconds(url: str, site: int) -> dict[str, float]:
    """The CPU time of a POST of each client and of a call, each in its cheapest round.

    Other load on the machine makes a round dearer and never cheaper.
    """
    clients = {"own": _own, "aiohttp": _aiohttp, "httpx2": _httpx2, "httpcore": _httpcore}
    async with AsyncExitStack() as stack:
        posts: dict[str, Post] = {
            name: await stack.enter_async_context(client(url)) for name, client in clients.items()
        }
        posts["call"] = await stack.enter_async_context(_call(f"http://127.0.0.1:{site}/mcp"))
        least = dict.fromkeys(posts, float("inf"))
        for _ in range(ROUNDS):
            for name, post in posts.items():
                least[name] = min(least[name], await _round(post))
    return least


async def _round(post: Post) -> float:
    began = time.process_time()
    for _ in range(POSTS):
        found = await post()
    taken = (time.process_time() - began) / POSTS
    if b'"result":10' not in found.replace(b" ", b""):
        raise RuntimeError(f"the server answered with {found[:200]!r}")
    return taken


@asynccontextmanager
async def _own(url: str) -> AsyncIterator[Post]:
    pool = HttpPool()

    async def post() -> bytes:
        response = await pool.send("POST", url, dict(HEADERS), BODY)
        try:
            return await response.aread()
        finally:
            response.close()

    yield post
    pool.close()


@asynccontextmanager
async def _aiohttp(url: str) -> AsyncIterator[Post]:
    async with aiohttp.ClientSession(headers=HEADERS) as session:

        async def post() -> bytes:
            async with session.post(url, data=BODY) as response:
                return await response.read()

        yield post


@asynccontextmanager
async def _httpx2(url: str) -> AsyncIterator[Post]:
    async with httpx2.AsyncClient(headers=HEADERS) as client:

        async def post() -> bytes:
            return (await client.post(url, content=BODY)).content

        yield post


@asynccontextmanager
async def _httpcore(url: str) -> AsyncIterator[Post]:
    async with httpcore.AsyncConnectionPool() as pool:

        async def post() -> bytes:
            return (await pool.request("POST", url, headers=HEADERS, content=BODY)).content

        yield post


@asynccontextmanager
async def _call(url: str) -> AsyncIterator[Post]:
    async with connect(url) as server:

        async def call() -> bytes:
            reply = await server.call("add_inline", {"x": 7, "y": 3})
            return f'"result":{reply.data}'.encode()

        yield call
