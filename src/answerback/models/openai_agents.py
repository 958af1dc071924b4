"""Tools for the OpenAI Agents SDK: `Agent("name", tools=to_openai_agents(server, tools))`."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from ..core.content import Block, Image
from ..errors import needs_extra
from .framework_tools import FrameworkTool, framework_tools, text_of
from .model_calls import AsyncCalls, BlockingCalls
from .reply_parts import TextOptions

with needs_extra("openai-agents"):
    from agents import FunctionTool, ToolOutputImage, ToolOutputText


def to_openai_agents(
    server: AsyncCalls | BlockingCalls,
    tools: Any,
    *,
    budget: int | None = None,
    untrusted: bool = False,
) -> list[FunctionTool]:
    """Return a connected server's tools for the OpenAI Agents SDK.

    *tools* is `server.tools()`, or some of it. The model gets a failure as a text that begins with
    "Error: ". *budget* is the maximum number of characters of a text. *untrusted* puts the text
    between markers, as in `reply.for_model`.
    """
    options = TextOptions(budget, untrusted)
    return [_tool(each) for each in framework_tools(server, tools, options)]


def _tool(source: FrameworkTool) -> FunctionTool:
    async def invoke(context: object, arguments: str) -> Any:
        reply = await source.call(arguments)
        if not reply.ok:
            return f"Error: {source.text(reply).removeprefix('Error: ')}"
        parts = [_part(each) for each in source.blocks(reply)]
        is_text = len(parts) == 1 and isinstance(parts[0], ToolOutputText)
        return parts[0].text if is_text else parts

    return FunctionTool(
        source.name, source.description, source.schema, invoke, strict_json_schema=False
    )


def _part(block: Block) -> ToolOutputText | ToolOutputImage:
    if isinstance(block, Image):
        data = b64encode(block.data).decode()
        return ToolOutputImage(image_url=f"data:{block.mime};base64,{data}")
    return ToolOutputText(text=text_of(block))
