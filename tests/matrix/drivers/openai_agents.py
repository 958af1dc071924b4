"""The OpenAI Agents SDK: the output of the tool."""

import asyncio
from typing import Any

from agents import RunContextWrapper
from agents.mcp import MCPServerStdio, MCPUtil
from seen import COMMAND, report


async def main() -> None:
    stdio = {"command": COMMAND[0], "args": COMMAND[1:]}
    async with MCPServerStdio(params=stdio, client_session_timeout_seconds=60) as server:
        tools = {tool.name: tool for tool in await server.list_tools()}

        async def see(tool: str) -> Any:
            context = RunContextWrapper(context=None)
            return await MCPUtil.invoke_mcp_tool(server, tools[tool], context, "{}")

        await report(see)


asyncio.run(main())
