"""The MCP servers of the OpenAI Agents SDK."""

import asyncio

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from driving import COMMAND, URL, WIRE, answers, of_result


async def main() -> None:
    stdio = {"command": COMMAND[0], "args": COMMAND[1:]}
    server = (
        MCPServerStdio(params=stdio, client_session_timeout_seconds=20)
        if WIRE == "stdio"
        else MCPServerStreamableHttp(params={"url": URL + "/mcp"})
    )
    async with server:
        await server.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            return of_result(await server.call_tool(tool, arguments))

        await answers(call)


asyncio.run(main())
