"""The mcp dialect: a `CallToolResult`, in each protocol version's form."""

from __future__ import annotations

from typing import Any

import msgspec

from ..contract import STANDARD, Contract
from ..core.content import Block, Text
from ..core.reply import Cut, Error, Reply
from ..core.shape import BARE, Shape
from ..core.versions import LATEST_STATEFUL, Version
from ..errors import UNKNOWN_ERROR, UNKNOWN_TEXT, MalformedReply
from .common import (
    META_PREFIX,
    REFUSAL,
    answerback_meta,
    author_meta,
    decode_object,
    encode,
    encoded_data,
    is_added,
    is_retryable,
    read_error,
    read_timestamp,
    to_utc,
    without_added,
    without_none,
    write_error,
)
from .mcp_blocks import project_block, read_block, write_block
from .reply_text import content_with_text, message_from_text

ERROR = META_PREFIX + "error"
TIMESTAMP = META_PREFIX + "timestamp"
BARE_DATA = META_PREFIX + "bare"
"""Marks non-object data that was wrapped only because MCP requires an object."""
CUT = META_PREFIX + "cut"
"""Lists what was left out of the data."""
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
"""MCP's own key in `_meta` for the server's name and version."""

# Most replies hold only data; their result is joined from these pieces.
_TEXT = b'{"content":[{"type":"text","text":'
_STRUCTURED = b'}],"structuredContent":'
_STATELESS = b',"isError":false,"resultType":"complete"'
_STATEFUL = b',"isError":false'
_SERVER_INFO_META = b',"_meta":{"' + SERVER_INFO.encode() + b'":'


def write(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version | None = None
) -> bytes:
    """Return the result as compact JSON."""
    return b"".join(write_in_pieces(reply, shape, contract, version))


def write_in_pieces(
    reply: Reply[Any],
    shape: Shape,
    contract: Contract,
    version: Version | None = None,
    *,
    server_info: bytes = b"",
) -> tuple[bytes, ...]:
    """Return the result in pieces, so that large ones can be sent without copying.

    *server_info* is the JSON of the server's name and version, for the result's `_meta`.
    """
    # This runs for every call, and is faster without calls into modules other than `shape`.
    version = version or LATEST_STATEFUL
    holds_only_data = (
        not reply.content
        and reply.data is not msgspec.UNSET
        and reply.error is None
        and not reply.meta
        and not reply.cuts
        and contract.text in ("json", "json_first")
        and not contract.envelope_in_mcp
    )
    if holds_only_data and version.structured and shape.structured:
        encoded = encode(reply.data) if reply.encoded is None else reply.encoded
        wrapped = opening, data, closing = shape.wrap_in_pieces(encoded)
        if opening or data.startswith(b"{"):
            # With the "json" text style, a string is used as is.
            is_text = encoded.startswith(b'"') and contract.text == "json"
            text = encoded if is_text else encode((b"".join(wrapped) if opening else data).decode())
            meta = (_SERVER_INFO_META, server_info, b"}") if server_info else ()
            end = _STATELESS if version.stateless else _STATEFUL
            return (_TEXT, text, _STRUCTURED, opening, data, closing, end, *meta, b"}")
    result = result_of(reply, shape, contract, version)
    if server_info:
        result.setdefault("_meta", {})[SERVER_INFO] = msgspec.Raw(server_info)
    return (encode(result),)


def read(
    result: bytes | str | dict[str, Any], shape: Shape = BARE, contract: Contract = STANDARD
) -> Reply[Any]:
    """Read a result written by Answerback or another server; raise MalformedReply."""
    found = decode_object(result, "a tool result")
    blocks = found.get("content")
    # Some servers send structuredContent without content.
    if blocks is None and "structuredContent" in found:
        blocks = []
    if not isinstance(blocks, list):
        raise MalformedReply("a tool result must have a list of content")
    content = tuple(read_block(block) for block in blocks if not is_added(block))
    meta = found.get("_meta")
    failed = found.get("isError")
    if failed is not None and not isinstance(failed, bool):
        raise MalformedReply(f"isError must be true or false, not {failed!r}")
    if contract.envelope_in_mcp and "timestamp" in found:
        time = found["timestamp"]
    else:
        # Earlier versions of Answerback sent the time with every result.
        time = meta.get(TIMESTAMP) if isinstance(meta, dict) else None
    return Reply(
        content=content,
        data=msgspec.UNSET if failed else _read_data(found, shape, contract),
        error=_read_error(found, content, contract) if failed else None,
        meta=author_meta(meta),
        timestamp=read_timestamp(time),
        cuts=_read_cuts(meta),
    )


def result_of(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version = LATEST_STATEFUL
) -> dict[str, Any]:
    """Return the result as an object, whose data is already encoded."""
    blocks = content_with_text(reply, shape, contract)
    content = tuple(project_block(block, version) for block in blocks)
    result: dict[str, Any] = {"content": [write_block(block) for block in content]}
    meta = author_meta(reply.meta)
    has_structured = version.structured and shape.structured
    data = None
    if reply.error is not None:
        if contract.tool_failure:
            from .returned_value import TOOL_FAILURE, write_failure

            meta.setdefault(TOOL_FAILURE, write_failure(reply, reply.error))
        error = reply.error
        # The message is left out if it equals the first text block.
        message = None if _first_text(content) == error.message else error.message
        more = without_none(
            message=message, details=error.details, hint=error.hint, kind=error.kind
        )
        meta[ERROR] = {"code": error.code, "retryable": is_retryable(error), **more}
        if REFUSAL in reply.meta:
            meta[REFUSAL] = reply.meta[REFUSAL]
    elif reply.data is not msgspec.UNSET and (has_structured or contract.envelope_in_mcp):
        wrapped = shape.wrap(encoded_data(reply))
        if not wrapped.startswith(b"{"):
            wrapped = b'{"result":%b}' % wrapped
            meta[BARE_DATA] = True
        data = msgspec.Raw(wrapped)
    if reply.cuts:
        meta[CUT] = reply.cuts
    if data is not None and has_structured:
        result["structuredContent"] = data
    if reply.content and (shape.message or shape.lines):
        from .model_text import add_for_hosts

        linked = content if version.block_meta else ()
        meta |= add_for_hosts(result, reply, shape, contract, linked)
    result["isError"] = reply.error is not None
    if version.stateless:
        result["resultType"] = "complete"
    if contract.envelope_in_mcp:
        written = None if reply.error is None else write_error(reply.error)
        result |= {"success": reply.ok, "timestamp": to_utc(reply.timestamp)}
        result |= without_none(data=data, error=written)
    # Hosts show `_meta` to the model, so it is left out if it is empty.
    return result | {"_meta": meta} if meta else result


def _first_text(content: tuple[Block, ...]) -> str | None:
    return next((block.text for block in content if isinstance(block, Text)), None)


def _read_data(found: dict[str, Any], shape: Shape, contract: Contract) -> Any:
    sent = found.get("structuredContent")
    if sent is None and contract.envelope_in_mcp:
        sent = found.get("data")
    if sent is None:
        return msgspec.UNSET
    meta = found.get("_meta")
    sent = without_added(sent, meta)
    if isinstance(meta, dict) and meta.get(BARE_DATA) and isinstance(sent, dict):
        sent = sent.get("result")
    return shape.unwrap(sent)


def _read_cuts(meta: Any) -> tuple[Cut, ...]:
    """Read what was left out; malformed cuts are dropped, because they are only notes."""
    if not isinstance(meta, dict) or CUT not in meta:
        return ()
    try:
        return msgspec.convert(meta[CUT], tuple[Cut, ...])
    except msgspec.ValidationError:
        return ()


def _read_error(found: dict[str, Any], content: tuple[Block, ...], contract: Contract) -> Error:
    error = answerback_meta(found.get("_meta"), "error")
    text = _first_text(content)
    if error:
        return read_error(error, text or "")
    message = UNKNOWN_TEXT if text is None else message_from_text(text, contract.error_text)
    details = found.get("structuredContent")
    if found.get("_meta"):
        from .returned_value import read_failure

        if (failure := read_failure(found["_meta"], message, details)) is not None:
            return failure
    return Error(UNKNOWN_ERROR, message, details)
