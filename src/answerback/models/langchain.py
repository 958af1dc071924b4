"""Tools for LangChain and LangGraph: `create_agent(model, to_langchain(server, tools))`."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from ..core.content import Block, Image
from ..core.reply import Reply
from ..errors import needs_extra
from .framework_tools import FrameworkTool, framework_tools, text_of
from .model_calls import AsyncCalls, BlockingCalls
from .reply_parts import TextOptions

with needs_extra("langchain"):
    from langchain_core.tools import BaseTool, ToolException


def to_langchain(
    server: AsyncCalls | BlockingCalls,
    tools: Any,
    *,
    budget: int | None = None,
    untrusted: bool = False,
) -> list[BaseTool]:
    """Return a connected server's tools for LangChain.

    *tools* is `server.tools()`, or some of it. A failed call becomes a `ToolMessage` with the
    status "error"; the artifact of others is the server's result, for `read`. *budget* is the
    maximum number of characters of a text. *untrusted* puts the text between markers, as in
    `reply.for_model`. The tools of an async server are for `ainvoke` only.
    """
    options = TextOptions(budget, untrusted)
    return [_tool(each) for each in framework_tools(server, tools, options)]


def _tool(source: FrameworkTool) -> BaseTool:
    return _ServerTool(
        name=source.name,
        description=source.description,
        args_schema=source.schema,
        source=source,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


class _ServerTool(BaseTool):
    """Not a StructuredTool, which takes an argument named `config` for its own."""

    source: FrameworkTool

    def _run(self, /, **arguments: object) -> tuple[Any, object]:
        return self._output(self.source.call_blocking(arguments))

    async def _arun(self, /, **arguments: object) -> tuple[Any, object]:
        return self._output(await self.source.call(arguments))

    def _output(self, reply: Reply[Any]) -> tuple[Any, object]:
        if not reply.ok:
            raise ToolException(self.source.text(reply))
        parts = [_part(each) for each in self.source.blocks(reply)]
        is_text = [each["type"] for each in parts] == ["text"]
        return parts[0]["text"] if is_text else parts, self.source.result(reply)


def _part(block: Block) -> dict[str, str]:
    if isinstance(block, Image):
        data = b64encode(block.data).decode()
        return {"type": "image", "base64": data, "mime_type": block.mime}
    return {"type": "text", "text": text_of(block)}
