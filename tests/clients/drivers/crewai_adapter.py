"""The MCP adapter of CrewAI."""

import asyncio

from crewai_tools import MCPServerAdapter
from driving import COMMAND, URL, WIRE, answers
from mcp import StdioServerParameters

stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
http = {"url": URL + "/mcp", "transport": "streamable-http"}
with MCPServerAdapter(stdio if WIRE == "stdio" else http) as adapted:
    tools = {tool.name: tool for tool in adapted}

    async def call(tool: str, arguments: dict) -> dict:
        return {"text": tools[tool].run(**arguments)}

    asyncio.run(answers(call))
