"""Prompts: messages made to order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ..calls.reply_check import check_content
from ..content import BLOCKS, Block, Text
from ..contract import Contract
from ..reply import Reply
from ..types.problems import InvalidOutput
from .tool import Options, Tool


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    content: Block | str
    role: Literal["user", "assistant"] = "user"


class Prompt(Tool):
    """A function that gives a string, a block, a Message, or a list of them."""

    def __init__(self, fn: Callable[..., Any], options: Options, contract: Contract) -> None:
        super().__init__(fn, {"lenient": True, **options}, contract)


def messages_of(value: Any) -> list[Message]:
    """The messages that a prompt's function gave back; raises InvalidOutput."""
    given = value if isinstance(value, list | tuple) else [value]
    messages = [item if isinstance(item, Message) else Message(item) for item in given]
    for index, message in enumerate(messages):
        if not isinstance(message.content, (str, *BLOCKS)):
            kind = type(message.content).__name__
            raise InvalidOutput(f"[{index}]", f"expected a message, a block or text, got {kind}")
    return messages


def prompt_reply(tool: Tool, value: Any) -> Reply[Any]:
    """The messages travel as content, one block each, with their roles beside them."""
    if isinstance(value, Reply):
        return value
    messages = messages_of(value)
    blocks = tuple(
        Text(message.content) if isinstance(message.content, str) else message.content
        for message in messages
    )
    check_content(blocks)
    return Reply(content=blocks, meta={"roles": [message.role for message in messages]})
