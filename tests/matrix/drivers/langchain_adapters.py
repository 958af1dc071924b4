"""LangChain's MCP adapters: the content of the ToolMessage; its artifact is not sent."""

import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from seen import COMMAND, ERROR, as_text, report


async def main() -> None:
    stdio = {"transport": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}
    async with MultiServerMCPClient({"app": stdio}).session("app") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}

        async def see(tool: str) -> str:
            call = {"name": tool, "args": {}, "id": "1", "type": "tool_call"}
            message = await tools[tool].ainvoke(call)
            return (ERROR if message.status == "error" else "") + as_text(message.content)

        await report(see)


asyncio.run(main())
