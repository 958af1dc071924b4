"""The MCP client of mcp-use."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_result
from mcp_use import MCPClient


async def main() -> None:
    stdio = {"command": COMMAND[0], "args": COMMAND[1:]}
    http = {"url": URL + "/mcp"}
    client = MCPClient({"mcpServers": {"app": stdio if WIRE == "stdio" else http}})
    session = await client.create_session("app")
    await session.list_tools()

    async def call(tool: str, arguments: dict) -> dict:
        return of_result(await session.call_tool(tool, arguments))

    try:
        await answers(call)
    finally:
        await client.close_all_sessions()


asyncio.run(main())
