"""Answers to what is no message, or may not be one here."""

from __future__ import annotations

from collections.abc import Awaitable

from ...mcp.messages import RpcError
from .request import Incoming


class HttpError(Exception):
    def __init__(self, status: int, error: RpcError, **headers: str) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def empty(incoming: Incoming, status: int) -> Awaitable[None]:
    return incoming.respond(status, (), b"")
