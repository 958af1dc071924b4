"""Runs the page about frameworks, and shows each framework calls that are easily got wrong.

Ends with exit status 1, and a line for each fault, if something is not as expected.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from tests.docs.page_runner import FRAMEWORKS, Python, blocks, matches

from answerback import App, Audio, Image, NotFound, Text, connect
from answerback.models.langchain import to_langchain
from answerback.models.openai_agents import to_openai_agents
from answerback.models.pydantic_ai import to_pydantic_ai

app = App("odd")


@app.tool(name="own.names")
def own_names(config: int, self: int, run_manager: int, callbacks: int, ctx: int) -> list[int]:
    """Has arguments that frameworks have uses for."""
    return [config, self, run_manager, callbacks, ctx]


@app.tool
def missing() -> str:
    """Fails."""
    raise NotFound("no such thing", hint="try another")


@app.tool
def blocks_in_order() -> list[Text | Image | Audio]:
    """Returns texts and an image."""
    return [Text("before"), Image(b"png", "image/png"), Text("after"), Audio(b"wav", "audio/wav")]


async def langchain(server: Any, tools: Any, name: str, arguments: Any) -> tuple[str, Any]:
    [tool] = [each for each in to_langchain(server, tools) if each.name == name]
    call = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
    message = await tool.ainvoke(call)
    content = message.content
    if isinstance(content, list):
        content = [each.get("text") or each["base64"] for each in content]
    return message.status, content


async def pydantic_ai(server: Any, tools: Any, name: str, arguments: Any) -> tuple[str, Any]:
    def model(messages: list, info: object) -> ModelResponse:
        asked = ToolCallPart(name, arguments)
        return ModelResponse(parts=[asked if len(messages) == 1 else TextPart("Done.")])

    run = await Agent(FunctionModel(model), tools=to_pydantic_ai(server, tools)).run("Go.")
    [part] = run.all_messages()[2].parts
    content = part.content
    if isinstance(content, list):
        content = [each if isinstance(each, str) else each.data for each in content]
    return part.outcome, content


async def openai_agents(server: Any, tools: Any, name: str, arguments: Any) -> tuple[str, Any]:
    [tool] = [each for each in to_openai_agents(server, tools) if each.name == name]
    output: Any = await tool.on_invoke_tool(None, json.dumps(arguments))
    if isinstance(output, list):
        output = [getattr(each, "text", None) or each.image_url for each in output]
    return "error" if str(output).startswith("Error: ") else "success", output


NAMES = {"config": 1, "self": 2, "run_manager": 3, "callbacks": 4, "ctx": 5}
WRONG = "Invalid arguments: config: expected int, got str 'x'"
GONE = "no such thing\nHint: try another"
AUDIO = "[audio: audio/wav, 3 bytes]"
Case = tuple[Callable[..., Any], str, Any, tuple[str, Any]]
CASES: list[Case] = [
    (langchain, "own_names", NAMES, ("success", "[1,2,3,4,5]")),
    (langchain, "own_names", NAMES | {"config": "x"}, ("error", WRONG)),
    (langchain, "missing", {}, ("error", GONE)),
    (langchain, "blocks_in_order", {}, ("success", ["before", "cG5n", "after", AUDIO])),
    (pydantic_ai, "own_names", NAMES, ("success", "[1,2,3,4,5]")),
    (pydantic_ai, "own_names", NAMES | {"config": "x"}, ("retried", WRONG)),
    (pydantic_ai, "missing", {}, ("failed", GONE)),
    (pydantic_ai, "blocks_in_order", {}, ("success", ["before", b"png", "after", b"wav"])),
    (openai_agents, "own_names", NAMES, ("success", "[1,2,3,4,5]")),
    (openai_agents, "own_names", NAMES | {"config": "x"}, ("error", f"Error: {WRONG}")),
    (openai_agents, "missing", {}, ("error", f"Error: {GONE}")),
    (openai_agents, "missing", [], ("error", "Error: the arguments must be an object, not list")),
    (
        *(openai_agents, "blocks_in_order", {}),
        ("success", ["before", "data:image/png;base64,cG5n", "after", AUDIO]),
    ),
]


async def odd_calls() -> list[str]:
    """The cases that are not as expected, with an async and with a blocking server."""
    faults = []
    async with AsyncExitStack() as stack:
        awaited = await stack.enter_async_context(connect(app))
        blocking = stack.enter_context(connect(app))
        for server, tools in ((awaited, await awaited.tools()), (blocking, blocking.tools())):
            for call, name, arguments, expected in CASES:
                found = await call(server, tools, name, arguments)
                if found != expected:
                    faults.append(f"{call.__name__} {name} {arguments}: {found}")
        [tool, *_] = to_langchain(blocking, blocking.tools())
        if tool.invoke(NAMES) != "[1,2,3,4,5]":
            faults.append("langchain: invoke")
    return faults


def page_faults() -> list[str]:
    """The examples of the page that print something else."""
    faults, printed = [], ""
    with asyncio.Runner() as runner, TemporaryDirectory() as folder:
        python = Python(FRAMEWORKS, Path(folder), runner)
        sys.modules[python.module.__name__] = python.module
        for block in blocks(FRAMEWORKS):
            if block.kind == "python":
                printed = python.run(block)
            elif not matches(block.text, printed):
                faults.append(f"{FRAMEWORKS.name}:{block.line} prints {printed!r}")
    return faults


found = [*asyncio.run(odd_calls()), *page_faults()]
sys.stdout.write("".join(f"{each}\n" for each in found))
sys.exit(1 if found else 0)
