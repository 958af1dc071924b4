"""The MCP toolset of Pydantic AI."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_png
from fastmcp.client.transports import StdioTransport
from pydantic_ai import BinaryContent
from pydantic_ai.mcp import MCPToolset


async def main() -> None:
    target = StdioTransport(COMMAND[0], COMMAND[1:]) if WIRE == "stdio" else URL + "/mcp"
    toolset = MCPToolset(target)
    async with toolset:
        await toolset.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            answer = await toolset.direct_call_tool(tool, arguments)
            if isinstance(answer, BinaryContent):
                return of_png(answer.data)
            if tool == "report":
                text, link, *added = answer
                return {"text": "\n".join([text, *added]), "link": link}
            # The toolset unwraps `{"result": …}`.
            return {"data": answer if isinstance(answer, dict) else {"result": answer}}

        await answers(call)


asyncio.run(main())
