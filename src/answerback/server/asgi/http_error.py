"""HttpError: a JSON-RPC error sent with a status other than 200."""

from __future__ import annotations

from ...errors import Unavailable
from ...protocol.jsonrpc import INTERNAL_ERROR, RpcError


class HttpError(Exception):
    """Refuses a request with *status*, *error* and *headers*."""

    def __init__(self, status: int, error: RpcError, **headers: str) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def unavailable(exc: Unavailable) -> RpcError:
    """Return the error of a request that needs the database, which is away."""
    data = {"code": exc.code, "retryable": exc.retryable, "retry_after": exc.retry_after}
    return RpcError(INTERNAL_ERROR, exc.message, data)
