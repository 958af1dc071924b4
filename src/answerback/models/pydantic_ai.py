"""Tools for Pydantic AI: `Agent(model, tools=to_pydantic_ai(server, tools))`."""

from __future__ import annotations

from typing import Any

from ..core.content import Audio, Block, Image
from ..error_codes import INVALID_ARGUMENTS
from ..errors import needs_extra
from .framework_tools import FrameworkTool, framework_tools, text_of
from .model_calls import AsyncCalls, BlockingCalls
from .reply_parts import TextOptions

with needs_extra("pydantic-ai"):
    from pydantic_ai import BinaryContent, ModelRetry, Tool, ToolFailed, ToolReturn


def to_pydantic_ai(
    server: AsyncCalls | BlockingCalls,
    tools: Any,
    *,
    budget: int | None = None,
    untrusted: bool = False,
) -> list[Tool[Any]]:
    """Return a connected server's tools for Pydantic AI.

    *tools* is `server.tools()`, or some of it. Wrong arguments raise `ModelRetry`, and other
    failures `ToolFailed`; the model reads both. A result's metadata is the server's result, for
    `read`. *budget* is the maximum number of characters of a text. *untrusted* puts the text
    between markers, as in `reply.for_model`.
    """
    options = TextOptions(budget, untrusted)
    return [_tool(each) for each in framework_tools(server, tools, options)]


def _tool(source: FrameworkTool) -> Tool[Any]:
    async def call(**arguments: object) -> ToolReturn[Any]:
        reply = await source.call(arguments)
        if reply.error is not None:
            # A model that is told to try again may repeat side effects.
            is_wrong = reply.error.code == INVALID_ARGUMENTS
            raise (ModelRetry if is_wrong else ToolFailed)(source.text(reply))
        parts = [_part(each) for each in source.blocks(reply)]
        return ToolReturn(parts[0] if len(parts) == 1 else parts, metadata=source.result(reply))

    return Tool.from_schema(call, source.name, source.description, source.schema)


def _part(block: Block) -> str | BinaryContent:
    if isinstance(block, Image | Audio):
        return BinaryContent(block.data, media_type=block.mime)
    return text_of(block)
