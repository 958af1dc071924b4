"""The MCP client of smolagents, which works with version 1 of the official SDK."""

import asyncio

from driving import COMMAND, URL, WIRE, answers
from mcp import StdioServerParameters
from PIL.Image import Image
from smolagents import MCPClient

stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
http = {"url": URL + "/mcp", "transport": "streamable-http"}
client = MCPClient(stdio if WIRE == "stdio" else http, structured_output=True)
try:
    tools = {tool.name: tool for tool in client.get_tools()}

    async def call(tool: str, arguments: dict) -> dict:
        answer = tools[tool](**arguments)
        if isinstance(answer, Image):
            # The client decodes the image, so its bytes are gone.
            assert (answer.format, answer.size) == ("PNG", (1, 1))
            return {}
        return {"text": answer} if isinstance(answer, str) else {"data": answer}

    asyncio.run(answers(call))
finally:
    client.disconnect()
