"""The MCP plugins of Semantic Kernel."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_blocks
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin


async def main() -> None:
    plugin = (
        MCPStdioPlugin(name="app", command=COMMAND[0], args=COMMAND[1:])
        if WIRE == "stdio"
        else MCPStreamableHttpPlugin(name="app", url=URL + "/mcp")
    )
    async with plugin:

        async def call(tool: str, arguments: dict) -> dict:
            parts = await plugin.call_tool(tool, **arguments)
            return of_blocks([part.inner_content for part in parts])

        await answers(call)


asyncio.run(main())
