"""The MCP toolset of Pydantic AI."""

import asyncio

from driving import COMMAND, URL, WIRE, answers
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset


async def main() -> None:
    target = StdioTransport(COMMAND[0], COMMAND[1:]) if WIRE == "stdio" else URL + "/mcp"
    toolset = MCPToolset(target)
    async with toolset:
        await toolset.list_tools()
        await answers(toolset.direct_call_tool)


asyncio.run(main())
