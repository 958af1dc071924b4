"""LlamaIndex: the content of the tool's output."""

import asyncio

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from seen import COMMAND, report


async def main() -> None:
    client = BasicMCPClient(COMMAND[0], args=COMMAND[1:], timeout=60)
    found = await McpToolSpec(client=client).to_tool_list_async()
    tools = {tool.metadata.name: tool for tool in found}

    async def see(tool: str) -> str:
        return (await tools[tool].acall()).content

    await report(see)


asyncio.run(main())
