"""The member `message`: what a reply's blocks say beside its data, in the data itself.

Some hosts show a model only `structuredContent`. There the author's text, the images and the links
would be lost.
"""

from __future__ import annotations

from typing import Any

from ..contract import Contract
from ..core.content import Block, Text
from ..core.json_value import JsonObject
from ..core.reply import Reply
from ..core.shape import Shape
from .common import encoded_data
from .model_text import describe, is_for_model
from .reply_text import data_text, is_same_json

MESSAGE = "message"
_SCHEMA = {"type": "string", "description": "What the tool says about this result"}


def schema_with_message(schema: JsonObject) -> JsonObject:
    """Return the schema of an object that may also have a message."""
    return {**schema, "properties": {**schema["properties"], MESSAGE: _SCHEMA}}


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


def _repeats(block: Block, data: tuple[str, ...]) -> bool:
    return isinstance(block, Text) and (
        block.text in data or any(is_same_json(block.text, each) for each in data)
    )
