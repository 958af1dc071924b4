"""MCP's `CallToolResult`, as each version of the protocol can say it."""

from __future__ import annotations

from typing import Any

import msgspec

from ..content import Block, Text
from ..contract import STANDARD, Contract
from ..errors import UNKNOWN_ERROR
from ..reply import Error, Reply
from ..shape import BARE, Shape
from ..versions import Version
from .common import (
    OURS,
    MalformedReply,
    decoded_object,
    encode,
    encoded_data,
    given,
    moment_of,
    our_meta,
    own_meta,
    plain,
    plain_data,
    project_error,
    read_error,
    retryable,
    utc,
    write_error,
)
from .contract_text import filled, message_in
from .mcp_blocks import project_block, read_block, write_block

ERROR = OURS + "error"
TIMESTAMP = OURS + "timestamp"
BARE_DATA = OURS + "bare"
"""Says that data which is no object was wrapped only because MCP asks for an object."""


def write(reply: Reply[Any], shape: Shape, contract: Contract, version: Version) -> bytes:
    """The result as compact JSON."""
    if _is_usual(reply, contract, version):
        encoded = encoded_data(reply)
        wrapped = shape.wrap(encoded)
        if wrapped.startswith(b"{"):
            is_text = encoded.startswith(b'"') and contract.text == "json"
            text = encoded if is_text else encode(wrapped.decode())
            stamp = encode(utc(reply.timestamp))
            return _USUAL[version.modern] % (text, wrapped, stamp)
    return encode(_result(reply, shape, contract, version))


def read(
    result: bytes | str | dict[str, Any], shape: Shape = BARE, contract: Contract = STANDARD
) -> Reply[Any]:
    """The reply that *result* is, whoever wrote it; raises MalformedReply."""
    found = decoded_object(result, "a tool result")
    content = _read_content(found)
    meta = found.get("_meta")
    failed = found.get("isError") or False
    if not isinstance(failed, bool):
        raise MalformedReply(f"isError must be true or false, not {failed!r}")
    return Reply(
        content=content,
        data=msgspec.UNSET if failed else _read_data(found, shape, contract),
        error=_read_error(found, content, contract) if failed else None,
        meta=own_meta(meta),
        timestamp=moment_of(meta.get(TIMESTAMP) if isinstance(meta, dict) else None),
    )


def project(reply: Reply[Any], shape: Shape, contract: Contract, version: Version) -> Reply[Any]:
    """What *version* can carry of the reply; from 2025-06-18 on, all of it."""
    carried = reply.error is None and _carries_data(contract, version)
    return Reply(
        content=_content(reply, shape, contract, version),
        data=plain_data(reply, shape) if carried else msgspec.UNSET,
        error=None if reply.error is None else project_error(reply.error),
        meta=plain(own_meta(reply.meta)),
        timestamp=utc(reply.timestamp),
    )


# A reply of data alone, as nearly all are, is spliced; the text of a string is the string.
_TEMPLATE = (
    b'{"content":[{"type":"text","text":%%b}],"structuredContent":%%b,"isError":false,'
    b'%b"_meta":{"' + TIMESTAMP.encode() + b'":%%b}}'
)
_USUAL = {False: _TEMPLATE % b"", True: _TEMPLATE % b'"resultType":"complete",'}


def _is_usual(reply: Reply[Any], contract: Contract, version: Version) -> bool:
    return (
        not reply.content
        and reply.data is not msgspec.UNSET
        and reply.error is None
        and not reply.meta
        and contract.text in ("json", "json_first")
        and not contract.envelope_in_mcp
        and version.structured
    )


def _content(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version
) -> tuple[Block, ...]:
    return tuple(project_block(block, version) for block in filled(reply, shape, contract))


def _result(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version
) -> dict[str, Any]:
    content = _content(reply, shape, contract, version)
    result: dict[str, Any] = {"content": [write_block(block) for block in content]}
    meta = {**own_meta(reply.meta), TIMESTAMP: utc(reply.timestamp)}
    data = None
    if reply.error is not None:
        meta[ERROR] = _write_error(reply.error, content)
    elif reply.data is not msgspec.UNSET and _carries_data(contract, version):
        data, bare = _structured(shape.wrap(encoded_data(reply)))
        meta |= bare
    if version.structured:
        result |= given(structuredContent=data)
    result["isError"] = reply.error is not None
    if version.result_type:
        result["resultType"] = "complete"
    if contract.envelope_in_mcp:
        result |= _envelope(reply, data)
    return result | {"_meta": meta}


def _carries_data(contract: Contract, version: Version) -> bool:
    return version.structured or contract.envelope_in_mcp


def _structured(wrapped: bytes) -> tuple[msgspec.Raw, dict[str, Any]]:
    if wrapped.startswith(b"{"):
        return msgspec.Raw(wrapped), {}
    return msgspec.Raw(b'{"result":%b}' % wrapped), {BARE_DATA: True}


def _envelope(reply: Reply[Any], data: msgspec.Raw | None) -> dict[str, Any]:
    error = None if reply.error is None else write_error(reply.error)
    members = {"success": reply.ok, "timestamp": utc(reply.timestamp)}
    return members | given(data=data, error=error)


def _write_error(error: Error, content: tuple[Block, ...]) -> dict[str, Any]:
    """The message is left out where the text is exactly it."""
    message = None if _first_text(content) == error.message else error.message
    more = given(message=message, details=error.details, hint=error.hint, kind=error.kind)
    return {"code": error.code, "retryable": retryable(error), **more}


def _first_text(content: tuple[Block, ...]) -> str | None:
    return next((block.text for block in content if isinstance(block, Text)), None)


def _read_content(found: dict[str, Any]) -> tuple[Block, ...]:
    blocks = found.get("content")
    # Some servers send structured data alone.
    if blocks is None and "structuredContent" in found:
        return ()
    if not isinstance(blocks, list):
        raise MalformedReply("a tool result must have a list of content")
    return tuple(read_block(block) for block in blocks)


def _read_data(found: dict[str, Any], shape: Shape, contract: Contract) -> Any:
    sent = found.get("structuredContent")
    if sent is None and contract.envelope_in_mcp:
        sent = found.get("data")
    if sent is None:
        return msgspec.UNSET
    meta = found.get("_meta")
    if isinstance(meta, dict) and meta.get(BARE_DATA) and isinstance(sent, dict):
        sent = sent.get("result")
    return shape.unwrap(sent)


def _read_error(found: dict[str, Any], content: tuple[Block, ...], contract: Contract) -> Error:
    ours = our_meta(found.get("_meta"), "error")
    text = _first_text(content)
    if ours:
        return read_error(ours, text or "")
    message = "Unknown error" if text is None else message_in(text, contract.error_text)
    return Error(UNKNOWN_ERROR, message, found.get("structuredContent"))
