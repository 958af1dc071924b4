"""The MCP client of LlamaIndex."""

import asyncio

from driving import COMMAND, URL, WIRE, answers
from llama_index.tools.mcp import BasicMCPClient


async def main() -> None:
    client = (
        BasicMCPClient(COMMAND[0], args=COMMAND[1:])
        if WIRE == "stdio"
        else BasicMCPClient(URL + "/mcp")
    )
    await client.list_tools()
    await answers(client.call_tool)


asyncio.run(main())
