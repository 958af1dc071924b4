"""Makes a checked Reply from the messages a prompt's function returned."""

from __future__ import annotations

from typing import Any

from ..core.content import Text
from ..core.reply import Reply
from ..tools.prompt import messages_of
from ..tools.tool import Tool
from .reply_check import checked_content


def prompt_reply(tool: Tool, value: object) -> Reply[Any]:
    """Return a reply with one block per message, and the messages' roles in its meta."""
    if isinstance(value, Reply):
        return value
    messages = messages_of(value)
    blocks = tuple(
        Text(message.content) if isinstance(message.content, str) else message.content
        for message in messages
    )
    content = checked_content(blocks)
    return Reply(content=content, meta={"roles": [message.role for message in messages]})
