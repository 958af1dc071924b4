"""LlamaIndex: the content of the tool's output."""

import asyncio

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from seen import COMMAND, ERROR, report


async def main() -> None:
    client = BasicMCPClient(COMMAND[0], args=COMMAND[1:], timeout=60)
    found = await McpToolSpec(client=client).to_tool_list_async()
    tools = {tool.metadata.name: tool for tool in found}

    async def see(tool: str) -> str:
        text = (await tools[tool].acall()).content
        # The text is the result as Python writes it, with its flag.
        return (ERROR if "isError=True" in text or "is_error=True" in text else "") + text

    await report(see)


asyncio.run(main())
