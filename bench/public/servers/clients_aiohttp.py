"""Cheaper clients: one aiohttp session, and redis-py, which uses hiredis where it is installed."""

import os
from functools import cache
from typing import Any

import aiohttp
import redis.asyncio


@cache
def store() -> Any:
    return redis.asyncio.from_url(os.environ["REDIS_URL"], decode_responses=True)


@cache
def _http() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(os.environ["API_URL"], timeout=aiohttp.ClientTimeout(10))


async def get(path: str, params: dict[str, Any] | None = None) -> Any:
    async with _http().get(path, params=params) as response:
        return await response.json()


async def post(path: str, body: object) -> Any:
    async with _http().post(path, json=body) as response:
        return await response.json()
