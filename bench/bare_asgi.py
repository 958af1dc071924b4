"""A bare ASGI app that decodes and encodes the same JSON as REST, and does nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec


class Arguments(msgspec.Struct):
    x: int
    y: int


class Result(msgspec.Struct):
    result: int


_decode = msgspec.json.Decoder(Arguments).decode
_encode = msgspec.json.Encoder().encode


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    message = await receive()
    arguments = _decode(message["body"])
    body = _encode(Result(arguments.x + arguments.y))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
