"""Our tools for the OpenAI Agents SDK, in an agent whose model makes one call."""

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from driving import answers, of_blocks
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from our_client import of_text, server

from answerback.models.openai_agents import to_openai_agents


class OneCall(Model):
    """A model that makes one call, and then answers."""

    def __init__(self, tool: str, arguments: dict) -> None:
        self.asked = ResponseFunctionToolCall(
            name=tool, arguments=json.dumps(arguments), call_id="1", type="function_call"
        )

    async def get_response(self, *, input: Any, **more: Any) -> ModelResponse:
        if isinstance(input, str) or len(input) == 1:
            return ModelResponse([self.asked], Usage(), None)
        text = ResponseOutputText(text="Done.", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="2", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse([message], Usage(), None)

    def stream_response(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    set_tracing_disabled(True)
    async with server() as connected:
        tools = to_openai_agents(connected, await connected.tools())

        async def call(tool: str, arguments: dict) -> dict:
            agent = Agent("tester", tools=tools, model=OneCall(tool, arguments))
            run = await Runner.run(agent, "Go.")
            [output] = [each.output for each in run.new_items if hasattr(each, "output")]
            if isinstance(output, str):
                return of_text(output, failed=output.startswith("Error: "))
            blocks = [each.model_dump() for each in output]
            for each in blocks:
                each["data"] = (each.get("image_url") or "").partition(",")[2]
            return of_blocks(blocks)

        await answers(call)


asyncio.run(main())
