"""The CPU time of a bare POST in our own HTTP client and in others, and of a whole call.

The other clients are compared by what a whole call would cost with them: our call, with our POST
taken out and theirs put in. The closest one, aiohttp, also makes the whole call: it is put in the
place of our pool, with the settings that the client would use. Its time-outs are off, because the
client has its own, and cookies are kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from unittest.mock import patch

import aiohttp
import httpcore
import httpx2
from yarl import URL

from answerback import connect
from answerback.client import http_requests
from answerback.http1.http_pool import HttpPool

from .report import Chart, Figure, Found
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


def measure() -> Found:
    with serving("bench.bare_mcp:app", UVICORNS) as bare, serving("bench.site:site") as site:
        seconds = asyncio.run(_seconds(f"http://127.0.0.1:{bare}/mcp", site))
    call, own = seconds.pop("call"), seconds.pop("own")
    whole = seconds.pop("call with aiohttp")
    detail = f"{whole * 1e6:.0f} against {call * 1e6:.0f} µs"
    rows: dict[str, list[float | None]] = {"Answerback": [own * 1e6, call * 1e6]}
    for name, post in seconds.items():
        rows[name] = [post * 1e6, (call - own + post) * 1e6]
    return [
        Chart(
            name="http-clients",
            title="Our HTTP client and those of others",
            unit="µs of CPU time",
            columns=["a POST", "a whole call (of others estimated)"],
            rows=rows,
        ),
        Figure(
            "a call over HTTP with aiohttp put in, times ours", whole / call, LIMIT, False, detail
        ),
        *(_estimate(name, theirs, call, own) for name, theirs in seconds.items()),
    ]


def _estimate(name: str, theirs: float, call: float, own: float) -> Figure:
    return Figure(
        f"a call over HTTP with {name}, estimated, times ours",
        (call - own + theirs) / call,
        LIMIT,
        False,
        f"POST {theirs * 1e6:.0f} against {own * 1e6:.0f} µs; "
        f"call {call * 1e6:.0f} µs, {(call - own) * 1e6:.0f} outside HTTP",
    )


async def _seconds(url: str, site: int) -> dict[str, float]:
    """The CPU time of a POST of each client and of a call, each in its cheapest round.

    Other load on the machine makes a round dearer and never cheaper.
    """
    clients = {"own": _own, "aiohttp": _aiohttp, "httpx2": _httpx2, "httpcore": _httpcore}
    async with AsyncExitStack() as stack:
        posts: dict[str, Post] = {
            name: await stack.enter_async_context(client(url)) for name, client in clients.items()
        }
        there = f"http://127.0.0.1:{site}/mcp"
        posts["call"] = await stack.enter_async_context(_call(there))
        with patch.object(http_requests, "HttpPool", AiohttpPool):
            posts["call with aiohttp"] = await stack.enter_async_context(_call(there))
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


def _post_with(pool: HttpPool | AiohttpPool, url: str) -> Post:
    async def post() -> bytes:
        response = await pool.send("POST", url, dict(HEADERS), BODY)
        try:
            return await response.aread()
        finally:
            response.close()

    return post


@asynccontextmanager
async def _own(url: str) -> AsyncIterator[Post]:
    pool = HttpPool()
    yield _post_with(pool, url)
    pool.close()


@asynccontextmanager
async def _aiohttp(url: str) -> AsyncIterator[Post]:
    pool = AiohttpPool()
    yield _post_with(pool, url)
    await pool.session.close()


class AiohttpPool:
    """The part of `HttpPool` that the client calls, on top of aiohttp."""

    def __init__(self) -> None:
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        self._urls: dict[str, URL] = {}
        self._closing: asyncio.Task[None] | None = None

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AiohttpResponse:
        where = self._urls.get(url) or self._urls.setdefault(url, URL(url))
        found = await self.session.request(method, where, headers=headers, data=body)
        return AiohttpResponse(found, url)

    def close(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.session.close())


class AiohttpResponse:
    def __init__(self, found: aiohttp.ClientResponse, url: str) -> None:
        self._found = found
        self.url = url
        self.status_code = found.status
        self.headers = found.headers

    @property
    def is_event_stream(self) -> bool:
        return self._found.content_type == "text/event-stream"

    async def aread(self) -> bytes:
        return await self._found.read()

    async def read_up_to(self, limit: int) -> bytes:
        return (await self.aread())[:limit]

    async def read_some(self) -> bytes:
        return await self._found.content.readany()

    def close(self) -> None:
        self._found.release()

    def drain(self) -> None:
        self._found.release()


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
