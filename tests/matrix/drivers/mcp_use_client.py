"""mcp-use: the output of the LangChain tools that it makes."""

import asyncio
from typing import Any

from mcp_use import MCPClient
from mcp_use.agents.adapters.langchain_adapter import LangChainAdapter
from seen import COMMAND, report


async def main() -> None:
    stdio = {"command": COMMAND[0], "args": COMMAND[1:]}
    client = MCPClient({"mcpServers": {"app": stdio}})
    try:
        tools = {tool.name: tool for tool in await LangChainAdapter().create_tools(client)}

        async def see(tool: str) -> Any:
            return await tools[tool].ainvoke({})

        await report(see)
    finally:
        await client.close_all_sessions()


asyncio.run(main())
