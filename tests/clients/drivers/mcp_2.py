"""The official Python SDK, version 2."""

import asyncio

from driving import COMMAND, URL, WIRE, answers
from mcp import Client, StdioServerParameters


async def main() -> None:
    stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    async with Client(stdio if WIRE == "stdio" else URL + "/mcp") as client:
        await client.list_tools()
        await answers(client.call_tool)


asyncio.run(main())
