"""The headers that say again, for boxes on the way, what a modern request says in its body."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...mcp.messages import HEADER_MISMATCH, Request, RpcError
from ...mcp.params import CallTool, ToolCall, read
from ...tools.tool import Tool

VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
PARAM = b"mcp-param-"
_ROUTING = (VERSION, METHOD, NAME)
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class _Named(msgspec.Struct):
    """What a request may be named by; whether it is of the right type is looked at later."""

    name: Any = None
    uri: Any = None


_NUMBER = re.compile(r"-?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,3})?", re.ASCII)
_OPEN, _CLOSE = "=?base64?", "?="


def refuse_duplicates(headers: Sequence[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in headers]
    for name in names:
        if (name in _ROUTING or name.startswith(PARAM)) and names.count(name) > 1:
            raise RpcError(HEADER_MISMATCH, f"Header {name.decode('latin-1')} is there twice")


def check_routing(request: Request, version: str, headers: Mapping[bytes, bytes]) -> None:
    """Raises RpcError where a header is missing, malformed, or not what the body says."""
    _match(headers, VERSION, version)
    _match(headers, METHOD, request.method)
    if isinstance(request.params, ToolCall):
        _match(headers, NAME, request.params.name)
    elif (member := _NAMED_BY.get(request.method)) is not None:
        said = getattr(read(request.params, _Named), member)
        if isinstance(said, str):
            _match(headers, NAME, said)


def check_params(tool: Tool, request: Request, headers: Mapping[bytes, bytes]) -> None:
    """The arguments that are mirrored in headers say the same in both."""
    try:
        given = msgspec.json.decode(read(request.params, CallTool).arguments)
    except ValueError:
        return  # Not ours to complain about: the arguments are decoded later.
    for path, header in tool.signature.header_params.items():
        value = _at(given, path)
        name = PARAM + header.lower().encode()
        found = headers.get(name)
        if value is None:
            continue
        if found is None:
            raise _mismatch(name, "is missing")
        if not _says(_decoded(name, found), value):
            raise _mismatch(name, "does not match the body")


def _match(headers: Mapping[bytes, bytes], name: bytes, said: str) -> None:
    found = headers.get(name)
    if found is None:
        raise _mismatch(name, "is missing")
    if _decoded(name, found) != said:
        raise _mismatch(name, "does not match the body")


def _decoded(name: bytes, value: bytes) -> str:
    """A value as it is, or in base64 where it could not stand in a header."""
    text = value.decode("latin-1").strip(" \t")
    if text[:2] != "=?":
        return text
    if not (text.startswith(_OPEN) and text.endswith(_CLOSE)):
        return text
    try:
        return b64decode(text[len(_OPEN) : -len(_CLOSE)], validate=True).decode()
    except ValueError:
        raise _mismatch(name, "is not base64 of UTF-8") from None


def _says(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        return _NUMBER.fullmatch(text) is not None and _number(text) == value
    return bool(text == value)


def _number(text: str) -> int | float:
    """Whole numbers to the last digit, however they are written."""
    whole, _, rest = text.partition(".")
    return float(text) if rest.strip("0") or "e" in text.lower() else int(whole)


def _at(given: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        given = given.get(step) if isinstance(given, dict) else None
    return given


def _mismatch(name: bytes, what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header {name.decode('latin-1')} {what}")
