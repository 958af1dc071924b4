"""A finished reply as bytes, which any wire can send later."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ..core.content import BLOCKS, Block, changed_block
from ..core.json_value import JsonObject
from ..core.reply import Error, Reply
from ..core.shape import Shape

_BLOCK_TYPES: dict[str, type[Any]] = {each.type: each for each in BLOCKS}
# Their `_meta` was checked when the block was made, and the check depends on who made it.
_METADATA = ("meta", "content_meta")


class _StoredReply(msgspec.Struct, array_like=True):
    content: list[tuple[str, dict[str, Any]]]
    encoded: bytes | None
    error: Error | None
    meta: dict[str, Any]
    timestamp: datetime
    shape: Shape | None


_replies = msgspec.msgpack.Decoder(_StoredReply)
_encode = msgspec.msgpack.Encoder().encode


def dump_reply(reply: Reply[Any], shape: Shape | None = None) -> bytes:
    """Return a checked reply as bytes; *shape* says how its data is wrapped."""
    encoded = reply.encoded
    if encoded is None and reply.has_data:
        encoded = msgspec.json.encode(reply.data)
    shape = reply.shape or shape
    return _encode(
        _StoredReply(
            [(block.type, _members(block)) for block in reply.content],
            encoded,
            reply.error,
            dict(reply.meta),
            reply.timestamp,
            # The tool decides when the reply is sent, because its options may have changed.
            None if shape is None else shape.without_additions(),
        )
    )


def load_reply(stored: bytes) -> Reply[Any]:
    """Return the reply; its data is the decoded JSON."""
    found = _replies.decode(stored)
    encoded = found.encoded
    return Reply(
        content=tuple(_block(type, members) for type, members in found.content),
        data=msgspec.UNSET if encoded is None else msgspec.json.decode(encoded),
        error=found.error,
        meta=found.meta,
        timestamp=found.timestamp,
        encoded=encoded,
        shape=found.shape,
    )


def _members(block: Block) -> JsonObject:
    members: JsonObject = msgspec.to_builtins(block, builtin_types=(bytes,))
    return {name: value for name, value in members.items() if value is not None}


def _block(type: str, members: JsonObject) -> Block:
    metadata = {name: members.pop(name) for name in _METADATA if name in members}
    block: Block = msgspec.convert(members, _BLOCK_TYPES[type])
    return changed_block(block, **metadata) if metadata else block
