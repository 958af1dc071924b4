"""Automatic function calling of google-genai: the part with the function's response."""

import asyncio
from typing import Any

from google.genai import types
from google.genai._extra_utils import (
    get_function_response_parts_async,
    parse_config_for_mcp_sessions,
)
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from seen import COMMAND, ERROR, as_text, report


def without_closed_objects(list_tools: Any) -> Any:
    """Remove `additionalProperties: false`, which this version cannot read."""

    async def listed() -> Any:
        result = await list_tools()
        for tool in result.tools:
            tool.inputSchema.pop("additionalProperties", None)
        return result

    return listed


async def main() -> None:
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        session.list_tools = without_closed_objects(session.list_tools)
        config = types.GenerateContentConfig(tools=[session])
        _, functions = await parse_config_for_mcp_sessions(config)

        async def see(tool: str) -> str:
            part = types.Part(function_call=types.FunctionCall(name=tool, args={}))
            candidate = types.Candidate(content=types.Content(role="model", parts=[part]))
            response = types.GenerateContentResponse(candidates=[candidate])
            [found] = await get_function_response_parts_async(response, functions)
            answer = found.function_response.response
            return (ERROR if "error" in answer else "") + as_text(answer)

        await report(see)


asyncio.run(main())
