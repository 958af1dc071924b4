"""The MCP toolset of Google's Agent Development Kit."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_result
from google.adk.tools.mcp_tool import (
    McpToolset,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from mcp import StdioServerParameters


async def main() -> None:
    stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    toolset = McpToolset(
        connection_params=StdioConnectionParams(server_params=stdio, timeout=20)
        if WIRE == "stdio"
        else StreamableHTTPConnectionParams(url=URL + "/mcp")
    )
    tools = {tool.name: tool for tool in await toolset.get_tools()}

    async def call(tool: str, arguments: dict) -> dict:
        result = await tools[tool].run_async(args=arguments, tool_context=None)
        return of_result(result | {"_meta": result.get("meta")})

    await answers(call)
    await toolset.close()


asyncio.run(main())
