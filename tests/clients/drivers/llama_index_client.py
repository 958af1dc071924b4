"""The MCP client of LlamaIndex."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_result
from llama_index.tools.mcp import BasicMCPClient


async def main() -> None:
    client = (
        BasicMCPClient(COMMAND[0], args=COMMAND[1:])
        if WIRE == "stdio"
        else BasicMCPClient(URL + "/mcp")
    )
    await client.list_tools()

    async def call(tool: str, arguments: dict) -> dict:
        return of_result(await client.call_tool(tool, arguments))

    await answers(call)


asyncio.run(main())
