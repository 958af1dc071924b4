"""The MCP toolset of Haystack."""

import asyncio
import json

from driving import COMMAND, URL, WIRE, answers, of_result
from haystack_integrations.tools.mcp import MCPToolset, StdioServerInfo, StreamableHttpServerInfo

toolset = MCPToolset(
    StdioServerInfo(command=COMMAND[0], args=COMMAND[1:])
    if WIRE == "stdio"
    else StreamableHttpServerInfo(url=URL + "/mcp")
)
toolset.warm_up()
tools = {tool.name: tool for tool in toolset}


async def call(tool: str, arguments: dict) -> dict:
    return of_result(json.loads(tools[tool].invoke(**arguments)))


asyncio.run(answers(call))
toolset.close()
