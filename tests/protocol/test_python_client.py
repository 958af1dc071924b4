"""The official Python client, mcp 2.3.0, in both eras, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Literal
from uuid import uuid4

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from tests.protocol.client_report import (
    ANSWER,
    ClientReport,
    Era,
    expected,
    expected_without_session,
)
from tests.protocol.official_tools import FOR_CLIENTS

from answerback.reading.read_reply import read

Wire = Literal["stdio", "http"]


async def accept(
    context: ClientRequestContext, params: types.ElicitRequestParams
) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=dict(ANSWER))


def text_of(block: types.ContentBlock) -> str:
    assert isinstance(block, types.TextContent)
    return block.text


async def report(target: str | StdioServerParameters, mode: str) -> ClientReport:
    steps: list[tuple[float, float, str]] = []
    name = uuid4().hex
    confirming: list[asyncio.Task[Any]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total or 0, message or ""))
        if progress == total:
            confirming.append(asyncio.create_task(client.call_tool("confirm", {"name": name})))

    async with Client(
        target, mode=mode, elicitation_callback=accept, read_timeout_seconds=20
    ) as client:
        tools = await client.list_tools()
        text = await client.call_tool("hello")
        structured = await client.call_tool("add", {"x": 2, "y": 3})
        counted = await client.call_tool("count", {"x": 2, "y": 3})
        squares = await client.call_tool("squares", {"n": 3})
        image = (await client.call_tool("picture")).content[0]
        error = await client.call_tool("fail", {"city": "Atlantis"})
        slow = await client.call_tool("slow", {"name": name}, progress_callback=on_progress)
        await asyncio.gather(*confirming)
        greeted = await client.call_tool("greet")
        welcomed = await client.call_tool("welcome")
        resource = (await client.read_resource("test://note")).contents[0]
        prompt = (await client.get_prompt("review", {"what": "this"})).messages[0]

        assert read(counted).data == {"total": 5, "terms": [2, 3]}
        schema = next(tool.output_schema for tool in tools.tools if tool.name == "squares")
        assert read(squares, output_schema=schema).data == [0, 1, 4]
        assert client.server_info is not None
        assert isinstance(image, types.ImageContent)
        assert isinstance(resource, types.TextResourceContents)
        return ClientReport(
            version=client.protocol_version,
            era="stateless" if client.session.discover_result is not None else "stateful",
            server=f"{client.server_info.name} {client.server_info.version}",
            tools=[tool.name for tool in tools.tools],
            text=text_of(text.content[0]),
            structured=structured.structured_content,
            with_message=[counted.structured_content, squares.structured_content],
            image=(image.mime_type, image.data),
            error=(error.is_error, text_of(error.content[0])),
            progress=steps,
            slow_result=text_of(slow.content[0]),
            asked_while_running=text_of(greeted.content[0]),
            asked_before_running=text_of(welcomed.content[0]),
            resource=resource.text,
            prompt=text_of(prompt.content),
        )


@pytest.mark.parametrize("wire", ["stdio", "http"])
@pytest.mark.parametrize(("mode", "era"), [("auto", "stateless"), ("legacy", "stateful")])
def test_the_python_client_reads_every_kind_of_result(
    for_clients_url: str, wire: Wire, mode: str, era: Era
) -> None:
    stdio = StdioServerParameters(command=sys.executable, args=[str(FOR_CLIENTS), "mcp"])
    target: Any = for_clients_url if wire == "http" else stdio

    found = asyncio.run(report(target, mode))

    assert found == expected(era)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_python_client_is_served_without_sessions(sessionless_url: str, mode: str) -> None:
    found = asyncio.run(report(sessionless_url, mode))

    assert found == (expected("stateless") if mode == "auto" else expected_without_session())
