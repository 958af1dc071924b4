"""Prompts: functions that return messages for a model."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..core.content import Block, is_block
from ..types.problems import InvalidOutput
from .tool import Tool, check_free_name


class Message(msgspec.Struct, frozen=True):
    """One message in a prompt."""

    content: Block | str
    """A string or a content block."""
    role: Literal["user", "assistant"] = "user"
    """The speaker's role."""


class Prompt(Tool):
    """A function that returns a string, a block, a Message, or a list of them."""

    noun = "prompt"
    _check_name = staticmethod(check_free_name)


def messages_of(value: Any) -> list[Message]:
    """Return the messages in a prompt's return value; raise InvalidOutput."""
    items = value if isinstance(value, list | tuple) else [value]
    messages: list[Message] = []
    for index, item in enumerate(items):
        if isinstance(item, Message):
            message = item
        elif hasattr(item, "role") and hasattr(item, "content"):
            # A message from the SDK or from FastMCP.
            message = Message(item.content, item.role)
        else:
            message = Message(item)
        if not isinstance(message.content, str) and not is_block(message.content):
            kind = type(message.content).__name__
            raise InvalidOutput(f"[{index}]", f"expected a message, a block or text, got {kind}")
        messages.append(message)
    return messages
