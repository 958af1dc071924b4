"""The part of a reply that each dialect carries, which is what `read` returns for it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import msgspec

from answerback.contract import Contract, Dialect
from answerback.core.content import Audio, Block, Image, Text
from answerback.core.reply import Error, Reply
from answerback.core.shape import Shape
from answerback.core.versions import LATEST_STATEFUL, Version
from answerback.dialects.common import (
    as_received,
    author_meta,
    encoded_data,
    is_retryable,
    kind_for_status,
    project_error,
    to_utc,
)
from answerback.dialects.mcp_blocks import project_block
from answerback.dialects.reply_text import DONE, content_with_text
from answerback.dialects.rest import safe_mime
from answerback.dialects.returned_value import TOOL_FAILURE, write_failure
from answerback.dialects.status_and_headers import header_text, header_token


def carried(
    reply: Reply[Any], dialect: Dialect, shape: Shape, contract: Contract, version: Version
) -> Reply[Any]:
    match dialect:
        case "mcp":
            return _mcp(reply, shape, contract, version)
        case "envelope":
            return _envelope(reply, shape, contract)
        case "problem" if reply.error is not None:
            return _problem(reply, reply.error)
        case "rest" if reply.error is not None:
            return _rest_error(reply, reply.error)
    return _rest(reply, shape)


def _mcp(reply: Reply[Any], shape: Shape, contract: Contract, version: Version) -> Reply[Any]:
    """From 2025-06-18 on, all but the time, which only `envelope_in_mcp` carries."""
    is_structured = version.structured and shape.structured
    has_data = reply.error is None and (is_structured or contract.envelope_in_mcp)
    meta = author_meta(reply.meta)
    if reply.error is not None and contract.tool_failure:
        meta.setdefault(TOOL_FAILURE, write_failure(reply, reply.error))
    return Reply(
        content=_blocks(content_with_text(reply, shape, contract), version),
        data=_data(reply, shape) if has_data else msgspec.UNSET,
        error=None if reply.error is None else project_error(reply.error),
        meta=as_received(meta),
        timestamp=to_utc(reply.timestamp),
    )


def _envelope(reply: Reply[Any], shape: Shape, contract: Contract) -> Reply[Any]:
    return Reply(
        content=_blocks(content_with_text(reply, shape, contract)),
        data=_data(reply, shape) if reply.error is None else msgspec.UNSET,
        error=None if reply.error is None else project_error(reply.error),
        meta=as_received(author_meta(reply.meta)),
        timestamp=to_utc(reply.timestamp),
    )


def _problem(reply: Reply[Any], error: Error) -> Reply[Any]:
    received = msgspec.structs.replace(
        error,
        details=as_received(error.details),
        retryable=is_retryable(error),
        kind=kind_for_status(error.code, error.row.status),
    )
    return Reply(error=received, timestamp=reply.timestamp)


def _rest_error(reply: Reply[Any], error: Error) -> Reply[Any]:
    code = header_token(error.code)
    kind = kind_for_status(code, error.row.status)
    hint = unquote(header_text(error.hint or "")) or None
    received = Error(code, error.message, hint=hint, kind=kind)
    return Reply(error=received, timestamp=reply.timestamp)


def _rest(reply: Reply[Any], shape: Shape) -> Reply[Any]:
    if reply.data is not msgspec.UNSET:
        return Reply(data=_data(reply, shape), timestamp=reply.timestamp)
    match reply.content:
        case (Image(url=None) | Audio(url=None) as media,):
            bare = type(media)(media.data, safe_mime(media))
            return Reply(content=(bare,), timestamp=reply.timestamp)
    return Reply(content=_blocks(reply.content or (Text(DONE),)), timestamp=reply.timestamp)


def _blocks(blocks: tuple[Block, ...], version: Version = LATEST_STATEFUL) -> tuple[Block, ...]:
    return tuple(project_block(block, version) for block in blocks)


def _data(reply: Reply[Any], shape: Shape) -> Any:
    """Return the data as a client decodes it, without its wrapping."""
    if reply.data is msgspec.UNSET:
        return msgspec.UNSET
    return shape.unwrap(msgspec.json.decode(shape.wrap(encoded_data(reply))))
