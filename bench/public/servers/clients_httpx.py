"""The clients of the original: one httpx client, and redis-py."""

import os
from functools import cache
from typing import Any

import httpx
import redis.asyncio


@cache
def store() -> Any:
    return redis.asyncio.from_url(os.environ["REDIS_URL"], decode_responses=True)


@cache
def _http() -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=os.environ["API_URL"], timeout=10.0)


async def get(path: str, params: dict[str, Any] | None = None) -> Any:
    return (await _http().get(path, params=params)).json()


async def post(path: str, body: object) -> Any:
    return (await _http().post(path, json=body)).json()
