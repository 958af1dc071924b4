"""Prompts: messages made to order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, TypedDict

import msgspec

from .content import BLOCKS, Block, Icon, Text
from .contract import Contract
from .reply import Reply
from .tool import Tool
from .types.problems import InvalidOutput


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    content: Block | str
    role: Literal["user", "assistant"] = "user"


class PromptOptions(TypedDict, total=False):
    """What an author may say about a prompt beside its function."""

    name: str
    title: str
    description: str
    icons: Sequence[Icon]
    meta: dict[str, Any]


class Prompt:
    """A function that gives a string, a block, a Message, or a list of them."""

    def __init__(
        self, fn: Callable[..., Any], options: PromptOptions, contract: Contract
    ) -> None:
        self.options = options
        name = options.get("name")
        self.tool = Tool(fn, {"name": name} if name else {}, contract, lenient=True)

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def title(self) -> str | None:
        return self.options.get("title")

    @cached_property
    def description(self) -> str:
        return self.options.get("description") or self.tool.description


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
    from .enforce import checked_content

    if isinstance(value, Reply):
        return value
    messages = messages_of(value)
    blocks = tuple(
        Text(message.content) if isinstance(message.content, str) else message.content
        for message in messages
    )
    checked_content(blocks)
    return Reply(content=blocks, meta={"roles": [message.role for message in messages]})
