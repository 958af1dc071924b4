"""The arguments and replies that are recorded: which, up to which size, and with masked secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..core.reply import Reply
from ..dialects.mcp import CUT
from ..dialects.mcp_blocks import write_block

if TYPE_CHECKING:
    from ..core.secrets import Masker
    from .call_record import CallRecord

_MAX_BYTES = 64 * 1024
"""Larger arguments and replies are not recorded."""
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def kept_bodies(record: CallRecord, *, arguments: bool, content: bool) -> dict[str, Any]:
    """Return the event's members that hold the arguments and the reply, if they are wanted."""
    if not (arguments or content):
        return {}
    bodies: dict[str, bytes] = {}
    if arguments:
        bodies["arguments"] = record.arguments
    if content and record.reply is not None:
        bodies["reply"] = b"" if record.size > _MAX_BYTES else reply_json(record.reply)
    # A large body is not shortened: half a secret would no longer be recognised and masked.
    fitting = {name: body for name, body in bodies.items() if 0 < len(body) <= _MAX_BYTES}
    masker = masker_for(record, fitting.get("reply", b""))
    kept = {name: masker.json(body) for name, body in fitting.items()}
    return {**kept, "omitted": tuple(name for name in bodies if name not in fitting)}


def masker_for(record: CallRecord, reply: bytes = b"") -> Masker:
    """Return the masker for a call's secrets; *reply* is the reply's JSON."""
    from ..core.secrets import Masker

    # Secret arguments whose names do not show it.
    aliases = frozenset() if record.tool is None else record.tool.arguments.aliases
    bodies = (each for each in (record.arguments, reply) if len(each) <= _MAX_BYTES)
    return Masker(*bodies, aliases=aliases)


def reply_json(reply: object) -> bytes:
    """Return the reply as JSON."""
    if not isinstance(reply, Reply):
        return _encode(reply)
    members: dict[str, Any] = {"content": [write_block(block) for block in reply.content]}
    if reply.data is not msgspec.UNSET:
        members["data"] = msgspec.Raw(reply.encoded) if reply.encoded else reply.data
    if reply.error is not None:
        members["error"] = reply.error
    meta = {**reply.meta, CUT: reply.cuts} if reply.cuts else reply.meta
    if meta:
        members["meta"] = meta
    return _encode(members)
