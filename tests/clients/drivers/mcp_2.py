"""The official Python SDK, version 2, in the newest version of the protocol."""

import asyncio
from typing import Any

from driving import COMMAND, URL, WIRE, answers, of_result
from mcp import Client, StdioServerParameters


async def main(mode: Any = "auto") -> None:
    stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    async with Client(stdio if WIRE == "stdio" else URL + "/mcp", mode=mode) as client:
        await client.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            return of_result(await client.call_tool(tool, arguments))

        await answers(call)


if __name__ == "__main__":
    asyncio.run(main())
