"""The floor: an ASGI application that reads a JSON-RPC message, and calls a function by its name.

It checks no argument, keeps no session, and knows no error.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec


class Params(msgspec.Struct):
    name: str = ""
    arguments: dict[str, Any] = {}


class Message(msgspec.Struct):
    method: str
    id: int = 0
    params: Params = msgspec.field(default_factory=Params)


_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode
_INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bare", "version": "1"},
}
Tool = Callable[..., Awaitable[str]]


def bare_app(tools: dict[str, Tool]) -> Any:
    entries = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
    listed = msgspec.Raw(json.dumps({"tools": entries}).encode())

    async def result(message: Message) -> object:
        if message.method == "tools/call":
            text = await tools[message.params.name](**message.params.arguments)
            return {"content": [{"type": "text", "text": text}]}
        return listed if message.method == "tools/list" else _INITIALIZED

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        message = _decode((await receive())["body"])
        status, body = 202, b""
        if message.method[:14] != "notifications/":
            answer = {"jsonrpc": "2.0", "id": message.id, "result": await result(message)}
            status, body = 200, _encode(answer)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app
