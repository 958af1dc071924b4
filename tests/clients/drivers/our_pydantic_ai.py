"""Our tools for Pydantic AI, in an agent whose model makes one call."""

import asyncio

from driving import answers, of_png
from our_client import check_result, of_text, server
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from answerback.models.pydantic_ai import to_pydantic_ai


async def main() -> None:
    async with server() as connected:
        tools = to_pydantic_ai(connected, await connected.tools())

        async def call(tool: str, arguments: dict) -> dict:
            def model(messages: list, info: object) -> ModelResponse:
                asked = ToolCallPart(tool, arguments)
                return ModelResponse(parts=[asked if len(messages) == 1 else TextPart("Done.")])

            run = await Agent(FunctionModel(model), tools=tools).run("Go.")
            assert run.all_messages_json()
            [part] = run.all_messages()[2].parts
            if isinstance(part.content, BinaryContent):
                return of_png(part.content.data)
            answer = of_text(part.content, failed=part.outcome != "success")
            check_result(answer, part.metadata)
            return answer

        await answers(call)


asyncio.run(main())
