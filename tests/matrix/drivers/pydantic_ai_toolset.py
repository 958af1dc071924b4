"""The MCP toolset of Pydantic AI: the tool return or the retry prompt that a model gets."""

import asyncio

from fastmcp.client.transports import StdioTransport
from pydantic_ai import BinaryContent, ModelRetry
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import RetryPromptPart, ToolReturnPart
from seen import COMMAND, ERROR, as_text, report


async def main() -> None:
    transport = StdioTransport(COMMAND[0], COMMAND[1:])
    async with MCPToolset(transport, init_timeout=60, read_timeout=60) as toolset:

        async def see(tool: str) -> str:
            try:
                found = await toolset.direct_call_tool(tool, {})
            except ModelRetry as exc:
                return ERROR + RetryPromptPart(exc.message, tool_name=tool).model_response()
            parts = found if isinstance(found, list) else [found]
            # Files are sent beside the text of the tool return.
            files = [each.base64 for each in parts if isinstance(each, BinaryContent)]
            others = [each for each in parts if not isinstance(each, BinaryContent)]
            content = others[0] if len(others) == 1 and not isinstance(found, list) else others
            text = ToolReturnPart(tool, content).model_response_str() if others else ""
            return as_text([text, *files])

        await report(see)


asyncio.run(main())
