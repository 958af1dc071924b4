"""The official Python SDK, version 1."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_result
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    transport = stdio_client(stdio) if WIRE == "stdio" else streamablehttp_client(URL + "/mcp")
    async with transport as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            return of_result(await session.call_tool(tool, arguments))

        await answers(call)


asyncio.run(main())
