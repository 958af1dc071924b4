"""Bodies with too many values: the middleware sends them unchecked, as it does very large ones."""

from __future__ import annotations

import asyncio
from typing import Any

from answerback.middleware.asgi import ValidReplies


def test_a_body_with_too_many_values_is_sent_unchecked() -> None:
    body = b'{"content":5,"a":[' + b"[]," * 400_000 + b"[]]}"
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    scope = {"type": "http", "method": "GET", "path": "/"}
    asyncio.run(ValidReplies(app)(scope, receive, send))

    assert sent[0]["status"] == 200
    assert sent[1]["body"] == body
