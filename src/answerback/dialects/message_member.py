"""MCP's additions for hosts that show a model only a part of a result.

Some show only `structuredContent`, so the data has a member `message` with the author's text and a
line for each other block. Some show only texts and images, so a text has the lines for the rest.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..contract import Contract
from ..core.content import Audio, Block, Embedded, Image, Link, Text
from ..core.json_value import JsonObject
from ..core.reply import Reply
from ..core.shape import Shape
from .common import ADDED, encoded_data
from .model_text import describe, is_for_model
from .reply_text import data_text, is_same_json

MESSAGE = "message"
_SCHEMA = {"type": "string", "description": "What the tool says about this result"}
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def schema_with_message(schema: JsonObject) -> JsonObject:
    """Return the schema of an object that may also have a message."""
    return {**schema, "properties": {**schema["properties"], MESSAGE: _SCHEMA}}


def add_for_hosts(
    result: dict[str, Any],
    reply: Reply[Any],
    shape: Shape,
    contract: Contract,
    blocks: tuple[Block, ...],
) -> dict[str, Any]:
    """Add the message to a result's data, and a text about *blocks*; return marks for `_meta`."""
    if shape.lines and (lines := lines_about(blocks)):
        result["content"].append({"type": "text", "text": lines, "_meta": {ADDED: True}})
    if not shape.message or "structuredContent" not in result:
        return {}
    members = _decode_members(result["structuredContent"])
    message = message_of(reply, shape, contract)
    if not message or MESSAGE in members:
        return {}
    result["structuredContent"] = {**members, MESSAGE: message}
    return {ADDED: MESSAGE}


def message_of(reply: Reply[Any], shape: Shape, contract: Contract) -> str:
    """Return the texts for the model, and a line for each other block; empty if there are none.

    A text that only repeats the data is left out.
    """
    encoded = encoded_data(reply)
    data = (data_text(encoded, shape, contract), shape.wrap(encoded).decode())
    parts = [
        describe(block)
        for block in reply.content
        if is_for_model(block) and not _repeats(block, data)
    ]
    return "\n".join(part for part in parts if part.strip())


def lines_about(content: tuple[Block, ...]) -> str:
    """Return a line for each link, sound and binary file; those that a text names are left out."""
    others = [block for block in content if not isinstance(block, Text) and is_for_model(block)]
    if not others:
        return ""
    texts = "\n".join(block.text for block in content if isinstance(block, Text))
    return "\n".join(describe(block) for block in others if _is_unnamed(block, texts))


def _is_unnamed(block: Block, texts: str) -> bool:
    """Return whether a host may show nothing about a block; all show images and embedded texts."""
    match block:
        case Image(url=str(uri)) | Audio(url=str(uri)) | Link(uri=uri):
            return uri not in texts
        case Embedded(uri=uri, text=None):
            return uri not in texts
        case Audio():
            return describe(block) not in texts
    return False


def _repeats(block: Block, data: tuple[str, ...]) -> bool:
    return isinstance(block, Text) and (
        block.text in data or any(is_same_json(block.text, each) for each in data)
    )
