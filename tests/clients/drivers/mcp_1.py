"""The official Python SDK, version 1."""

import asyncio
from typing import Any

from driving import COMMAND, URL, WIRE, answers, of_result
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def call_all(transport: Any) -> None:
    async with transport as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            return of_result(await session.call_tool(tool, arguments))

        await answers(call)


if __name__ == "__main__":
    stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    http = URL + "/mcp"
    asyncio.run(call_all(stdio_client(stdio) if WIRE == "stdio" else streamablehttp_client(http)))
