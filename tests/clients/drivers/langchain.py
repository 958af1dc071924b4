"""The MCP adapters of LangChain."""

import asyncio

from driving import COMMAND, URL, WIRE, answers
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def main() -> None:
    stdio = {"transport": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}
    http = {"transport": "streamable_http", "url": URL + "/mcp"}
    client = MultiServerMCPClient({"app": stdio if WIRE == "stdio" else http})
    async with client.session("app") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}

        async def call(tool: str, arguments: dict) -> object:
            assert isinstance(tools[tool].args, dict)
            return await tools[tool].ainvoke(arguments)

        await answers(call)


asyncio.run(main())
