"""JSON-RPC as MCP speaks it: what comes in is sorted, what goes out is spliced together."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from ..types.problems import InvalidJson
from ..types.syntax import refuse_bad_text

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
NO_PARAMS = msgspec.Raw(b"{}")
MAX_BATCH = 1000
"""The answers to a batch are kept until all are there."""


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
    params: msgspec.Raw = NO_PARAMS


class Notification(msgspec.Struct, frozen=True):
    method: str
    params: msgspec.Raw = NO_PARAMS


class Response(msgspec.Struct, frozen=True):
    """The other end's answer to a request of ours."""

    id: Id
    result: msgspec.Raw | None = None
    error: msgspec.Raw | None = None


Message: TypeAlias = Request | Notification | Response


class _Frame(msgspec.Struct):
    jsonrpc: str = ""
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_frames = msgspec.json.Decoder(_Frame)
_batches = msgspec.json.Decoder(list[msgspec.Raw])


def parse(text: bytes) -> Message:
    """The one message in *text*; raises RpcError, with the id where it can be read."""
    try:
        refuse_bad_text(text)
        frame = _frames.decode(text)
    except (msgspec.ValidationError, InvalidJson) as exc:
        raise _malformed(text, exc) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise RpcError(PARSE_ERROR, f"Parse error: {exc}") from None
    return _sorted(frame)


def parse_batch(text: bytes) -> list[bytes] | None:
    """The texts of the messages, if *text* is a JSON array."""
    if not text.lstrip(b" \t\r\n").startswith(b"["):
        return None
    try:
        refuse_bad_text(text)
        parts = _batches.decode(text)
        if len(parts) > MAX_BATCH:
            raise RpcError(INVALID_REQUEST, f"A batch of more than {MAX_BATCH} messages")
        return [bytes(part) for part in parts]
    except (ValueError, RecursionError) as exc:
        raise RpcError(PARSE_ERROR, f"Parse error: {exc}") from None


def _sorted(frame: _Frame) -> Message:
    id = None if frame.id is msgspec.UNSET else frame.id
    if frame.jsonrpc != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', id=id)
    if frame.method is not msgspec.UNSET:
        params = NO_PARAMS if frame.params is msgspec.UNSET else frame.params
        if not bytes(params).lstrip().startswith(b"{"):
            raise RpcError(INVALID_REQUEST, "params must be an object", id=id)
        return (
            Notification(frame.method, params) if id is None else Request(id, frame.method, params)
        )
    answered = frame.result is not msgspec.UNSET or frame.error is not msgspec.UNSET
    if id is None or not answered:
        raise RpcError(INVALID_REQUEST, "neither a request, a notification nor a response", id=id)
    result = None if frame.result is msgspec.UNSET else frame.result
    return Response(id, result, None if frame.error is msgspec.UNSET else frame.error)


def _malformed(text: bytes, exc: Exception) -> RpcError:
    """A message of the wrong shape still gets an answer under its id, if it has one."""
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return RpcError(PARSE_ERROR, f"Parse error: {exc}")
    if isinstance(exc, InvalidJson):
        return RpcError(PARSE_ERROR, f"Parse error: {exc}")
    id = found.get("id") if isinstance(found, dict) else None
    readable = isinstance(id, int | str) and not isinstance(id, bool)
    return RpcError(INVALID_REQUEST, f"Invalid request: {exc}", id=id if readable else None)


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
