"""FastMCP's client, in several versions."""

import asyncio

from driving import COMMAND, URL, WIRE, answers
from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main() -> None:
    stdio = StdioTransport(COMMAND[0], COMMAND[1:])
    async with Client(stdio if WIRE == "stdio" else URL + "/mcp") as client:
        await client.list_tools()

        async def call(tool: str, arguments: dict) -> object:
            result = await client.call_tool(tool, arguments)
            return [*result.content, result.structured_content]

        await answers(call)


asyncio.run(main())
