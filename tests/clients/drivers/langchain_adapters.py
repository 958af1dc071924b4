"""The MCP adapters of LangChain."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_blocks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def main() -> None:
    stdio = {"transport": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}
    http = {"transport": "streamable_http", "url": URL + "/mcp"}
    client = MultiServerMCPClient({"app": stdio if WIRE == "stdio" else http})
    async with client.session("app") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}

        async def call(tool: str, arguments: dict) -> dict:
            assert isinstance(tools[tool].args, dict)
            call = {"name": tool, "args": arguments, "id": "1", "type": "tool_call"}
            message = await tools[tool].ainvoke(call)
            answer = of_blocks(message.content) | {"error": message.status == "error"}
            if message.artifact is not None and "structured_content" in message.artifact:
                answer["data"] = message.artifact["structured_content"]
            return answer

        await answers(call)


asyncio.run(main())
