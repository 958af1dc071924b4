"""Prompts: functions that return messages for a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ..contract import Contract
from ..core.content import Block, is_block
from ..types.problems import InvalidOutput
from .tool import Tool, check_free_name
from .tool_options import CommonOptions


class Message(msgspec.Struct, frozen=True):
    """One message in a prompt."""

    content: Block | str
    """A text or a content block."""
    role: Literal["user", "assistant"] = "user"
    """Who says it."""


class Prompt(Tool):
    """A function that returns a string, a block, a Message, or a list of them."""

    noun = "prompt"
    _check_name = staticmethod(check_free_name)

    def __init__(self, fn: Callable[..., Any], options: CommonOptions, contract: Contract) -> None:
        super().__init__(fn, {"lenient": True, **options}, contract)


def messages_of(value: Any) -> list[Message]:
    """Return the messages in a prompt's return value; raise InvalidOutput."""
    items = value if isinstance(value, list | tuple) else [value]
    messages: list[Message] = []
    for index, item in enumerate(items):
        if isinstance(item, Message):
            message = item
        elif hasattr(item, "role") and hasattr(item, "content"):
            # A message of the SDK or of FastMCP.
            message = Message(item.content, item.role)
        else:
            message = Message(item)
        if not isinstance(message.content, str) and not is_block(message.content):
            kind = type(message.content).__name__
            raise InvalidOutput(f"[{index}]", f"expected a message, a block or text, got {kind}")
        messages.append(message)
    return messages
