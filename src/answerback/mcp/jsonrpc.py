"""Sorts what comes in: requests, notifications, responses; and what is none of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..types.json_text import refuse_bad_text
from ..types.problems import InvalidJson
from .messages import (
    INVALID_REQUEST,
    NO_PARAMS,
    PARSE_ERROR,
    Message,
    Notification,
    Request,
    Response,
    RpcError,
)
from .params import ToolCall

MAX_BATCH = 1000
"""The answers to a batch are kept until all are there."""


class _CallFrame(Request, frozen=True, kw_only=True):
    """What nearly all requests are: it is read in one go."""

    jsonrpc: Literal["2.0"]
    method: Literal["tools/call"]
    params: ToolCall


class _Frame(msgspec.Struct):
    jsonrpc: str = ""
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_calls = msgspec.json.Decoder(_CallFrame)
_frames = msgspec.json.Decoder(_Frame)
_batches = msgspec.json.Decoder(list[msgspec.Raw])


def parse(text: bytes) -> Message:
    """The one message in *text*; raises RpcError, with the id where it can be read."""
    try:
        refuse_bad_text(text)
        if b'"tools/call"' in text and (call := _tool_call(text)) is not None:
            return call
        frame = _frames.decode(text)
    except (msgspec.ValidationError, InvalidJson) as exc:
        raise _malformed(text, exc) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise RpcError(PARSE_ERROR, f"Parse error: {exc}") from None
    return _sorted(frame)


def _tool_call(text: bytes) -> Request | None:
    """None for one that has anything odd about it, which is then looked at step by step."""
    try:
        return _calls.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


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
