"""The MCP workbench of AutoGen, which works with version 1 of the official SDK."""

import asyncio

from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams
from driving import COMMAND, URL, WIRE, answers


async def main() -> None:
    params = (
        StdioServerParams(command=COMMAND[0], args=COMMAND[1:])
        if WIRE == "stdio"
        else StreamableHttpServerParams(url=URL + "/mcp")
    )
    async with McpWorkbench(params) as workbench:
        await workbench.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            result = await workbench.call_tool(tool, arguments)
            # The workbench decodes an image, so its bytes are gone.
            texts = [part.content for part in result.result if part.type == "TextResultContent"]
            return {"error": result.is_error, "text": "\n".join(texts)}

        await answers(call)


asyncio.run(main())
