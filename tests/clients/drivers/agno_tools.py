"""The MCP tools of Agno."""

import asyncio

from agno.tools.function import FunctionCall
from agno.tools.mcp import MCPTools
from driving import COMMAND, URL, WIRE, answers, of_png
from mcp import StdioServerParameters


async def main() -> None:
    stdio = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    tools = (
        MCPTools(server_params=stdio, transport="stdio")
        if WIRE == "stdio"
        else MCPTools(url=URL + "/mcp", transport="streamable-http")
    )
    async with tools:

        async def call(tool: str, arguments: dict) -> dict:
            function = tools.functions[tool]
            result = (await FunctionCall(function=function, arguments=arguments).aexecute()).result
            answer = of_png(result.images[0].content) if result.images else {"text": result.content}
            more = result.metadata or {}
            if "structured_content" in more:
                answer["data"] = more["structured_content"]
            failure = (more.get("meta") or {}).get("answerback/error")
            return answer | ({} if failure is None else {"code": failure["code"]})

        await answers(call)


asyncio.run(main())
