"""The MCP client of Strands Agents."""

import asyncio

from driving import COMMAND, URL, WIRE, answers, of_png
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from strands.tools.mcp import MCPClient

stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
client = MCPClient(
    lambda: stdio_client(stdio) if WIRE == "stdio" else streamable_http_client(URL + "/mcp")
)
with client:
    client.list_tools_sync()

    async def call(tool: str, arguments: dict) -> dict:
        result = await client.call_tool_async("1", tool, arguments)
        answer = {"error": result["status"] == "error"}
        answer["text"] = "\n".join(part["text"] for part in result["content"] if "text" in part)
        for part in result["content"]:
            if "image" in part:
                answer |= of_png(part["image"]["source"]["bytes"])
        if "structuredContent" in result:
            answer["data"] = result["structuredContent"]
        failure = result.get("metadata", {}).get("answerback/error")
        return answer if failure is None else answer | {"code": failure["code"]}

    asyncio.run(answers(call))
