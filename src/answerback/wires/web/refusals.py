"""Answers to what is no message, or may not be one here."""

from __future__ import annotations

from ...mcp.messages import RpcError
from .body import Send


class HttpError(Exception):
    def __init__(self, status: int, error: RpcError, **headers: str) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]


async def empty(send: Send, status: int) -> None:
    headers = [(b"content-length", b"0")] if status != 204 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
