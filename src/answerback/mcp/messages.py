"""JSON-RPC as MCP speaks it: what its messages are, and how ours are spliced together."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

Id: TypeAlias = int | str
Params: TypeAlias = msgspec.Raw | msgspec.Struct
"""As they were sent, or read already: `params.read` takes both."""
NO_PARAMS = msgspec.Raw(b"{}")


class RpcError(Exception):
    """What the other end is told instead of a result."""

    def __init__(self, code: int, message: str, data: Any = None, *, id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class Request(msgspec.Struct, frozen=True):
    id: Id
    method: str
    params: Params = NO_PARAMS


class Notification(msgspec.Struct, frozen=True):
    method: str
    params: msgspec.Raw = NO_PARAMS


class Response(msgspec.Struct, frozen=True):
    """The other end's answer to a request of ours."""

    id: Id
    result: msgspec.Raw | None = None
    error: msgspec.Raw | None = None


Message: TypeAlias = Request | Notification | Response


def result_frame(id: Id, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode(id), result)


def error_frame(id: Id | None, error: RpcError) -> bytes:
    """Without a readable id there is no `id`: the schema permits its absence, not `null`."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    if id is None:
        return b'{"jsonrpc":"2.0","error":%b}' % _encode(body)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(id), _encode(body))


def notification_frame(method: str, params: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def request_frame(id: Id, method: str, params: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


_encode = msgspec.json.Encoder().encode
