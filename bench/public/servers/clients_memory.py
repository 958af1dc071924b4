"""Clients that answer from memory, for a run without Valkey and the API."""

import json
from typing import Any

from bench.public.catalogue import api_answer


class MemoryStore:
    """The commands that the tools send, for users with one item in the cart."""

    def __init__(self) -> None:
        self._count = 0

    async def zrevrangebyscore(self, *_: object, **options: int) -> list[str]:
        return [f"product:{id}" for id in range(options["num"])]

    async def hgetall(self, _: str) -> dict[str, str]:
        return {"items": json.dumps([{"product_id": 7, "qty": 1}]), "total": "1.50"}

    async def lrange(self, _: str, first: int, last: int) -> list[str]:
        return [json.dumps({"order_id": f"ORD-{n}"}) for n in range(first, last + 1)]

    async def incr(self, _: str) -> int:
        self._count += 1
        return self._count

    async def rpush(self, *_: str) -> int:
        return self._count

    async def zadd(self, *_: object, **options: bool) -> float:
        return float(options["incr"])


_STORE = MemoryStore()


def store() -> MemoryStore:
    return _STORE


async def get(path: str, params: dict[str, Any] | None = None) -> Any:
    query = "&".join(f"{name}={value}" for name, value in (params or {}).items())
    return json.loads(api_answer(f"{path}?{query}", b"") or b"{}")


async def post(path: str, body: object) -> Any:
    return json.loads(api_answer(path, json.dumps(body).encode()) or b"{}")
