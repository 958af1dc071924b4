"""FastMCP's client, in several versions."""

import asyncio
from typing import Any

import pydantic_core
from driving import COMMAND, URL, WIRE, answers, of_blocks
from fastmcp import Client
from fastmcp.client.transports import StdioTransport


def unwrapped(tool: str, result: Any) -> bool:
    """True if the client's own form of the data has no `{"result": …}` around it."""
    data, structured = pydantic_core.to_jsonable_python(result.data), result.structured_content
    if tool in ("nothing", "anything"):
        # The client unwraps by the output schema; a tool that returns Any has none.
        return (data or {}) == structured
    return bool(data == structured.get("result", structured))


async def main() -> None:
    stdio = StdioTransport(COMMAND[0], COMMAND[1:])
    async with Client(stdio if WIRE == "stdio" else URL + "/mcp") as client:
        await client.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            answer = of_blocks(result.content) | {"error": result.is_error}
            if failure := (result.meta or {}).get("answerback/error"):
                answer["code"] = failure["code"]
            if result.structured_content is not None:
                answer["data"] = result.structured_content
                assert unwrapped(tool, result), f"data is {result.data!r}"
            return answer

        await answers(call)


asyncio.run(main())
