"""The MCP client of Strands Agents."""

import asyncio

from driving import COMMAND, URL, WIRE, answers
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client
from strands.tools.mcp import MCPClient

stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
client = MCPClient(
    lambda: stdio_client(stdio) if WIRE == "stdio" else streamablehttp_client(URL + "/mcp")
)
with client:
    client.list_tools_sync()

    async def call(tool: str, arguments: dict) -> dict:
        result = await client.call_tool_async("1", tool, arguments)
        return {"debug": repr(result)}

    asyncio.run(answers(call))
