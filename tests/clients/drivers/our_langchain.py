"""Our tools for LangChain, called as a model's message asks for them."""

import asyncio

from driving import answers, of_blocks
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from our_client import check_result, of_text, server

from answerback.models.langchain import to_langchain


async def main() -> None:
    async with server() as connected:
        tools = {tool.name: tool for tool in to_langchain(connected, await connected.tools())}

        async def call(tool: str, arguments: dict) -> dict:
            wanted = {"name": tool, "args": arguments, "id": "1", "type": "tool_call"}
            model = FakeMessagesListChatModel(responses=[AIMessage("", tool_calls=[wanted])])
            [asked] = (await model.ainvoke("Go.")).tool_calls
            message = await tools[tool].ainvoke(asked)
            content, failed = message.content, message.status == "error"
            is_text = isinstance(content, str)
            answer = of_text(content, failed=failed) if is_text else of_blocks(content)
            check_result(answer, message.artifact)
            return answer

        await answers(call)


asyncio.run(main())
