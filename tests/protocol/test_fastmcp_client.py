"""FastMCP's client, 4.1.2, in both eras, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, Literal
from uuid import uuid4

import mcp_types as types
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from tests.conftest import EVERYTHING
from tests.protocol.client_report import ANSWER, ClientReport, Era, expected
from tests.protocol.official_tools import FOR_CLIENTS

from answerback.reading.read_reply import read

Wire = Literal["stdio", "http"]


async def accept(_: str, response_type: Any, __: Any, ___: Any) -> Any:
    return response_type(**ANSWER)


def text_of(block: types.ContentBlock) -> str:
    assert isinstance(block, types.TextContent)
    return block.text


async def report(target: Any, mode: Any) -> ClientReport:
    steps: list[tuple[float, float, str]] = []
    name = uuid4().hex
    confirming: list[asyncio.Task[Any]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total or 0, message or ""))
        if progress == total:
            confirming.append(asyncio.create_task(client.call_tool("confirm", {"name": name})))

    async with Client(target, mode=mode, elicitation_handler=accept, timeout=60) as client:
        tools = await client.list_tools()
        text = await client.call_tool("hello")
        structured = await client.call_tool("add", {"x": 2, "y": 3})
        counted = await client.call_tool("count", {"x": 2, "y": 3})
        squares = await client.call_tool("squares", {"n": 3})
        image = (await client.call_tool("picture")).content[0]
        error = await client.call_tool("fail", {"city": "Atlantis"}, raise_on_error=False)
        slow = await client.call_tool("slow", {"name": name}, progress_handler=on_progress)
        await asyncio.gather(*confirming)
        greeted = await client.call_tool("greet")
        welcomed = await client.call_tool("welcome")
        resource = (await client.read_resource("test://note"))[0]
        prompt = (await client.get_prompt("review", {"what": "this"})).messages[0]

        assert text.data == text_of(text.content[0])
        assert (structured.data.total, structured.data.terms) == (5, [2, 3])
        assert (counted.data.total, squares.data) == (5, [0, 1, 4])
        assert read(counted).data == {"total": 5, "terms": [2, 3]}
        assert read(squares).data == [0, 1, 4]
        assert isinstance(image, types.ImageContent)
        assert isinstance(resource, types.TextResourceContents)
        assert client.server_info is not None
        return ClientReport(
            version=client.protocol_version or "",
            era="stateful" if client.initialize_result is not None else "stateless",
            server=f"{client.server_info.name} {client.server_info.version}",
            tools=[tool.name for tool in tools],
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
def test_the_fastmcp_client_reads_every_kind_of_result(
    for_clients_url: str, wire: Wire, mode: str, era: Era
) -> None:
    stdio = StdioTransport(sys.executable, [str(FOR_CLIENTS), "mcp"], keep_alive=False)
    target = for_clients_url if wire == "http" else stdio

    found = asyncio.run(report(target, mode))

    assert found == expected(era)


async def sum_read_by_client() -> Any:
    transport = StdioTransport(sys.executable, [str(EVERYTHING), "mcp"], env=dict(os.environ))
    async with Client(transport, timeout=60) as client:
        return (await client.call_tool("add", {"x": 7, "y": 3})).data


def test_the_fastmcp_client_reads_a_number_as_a_number() -> None:
    """It unwraps `{"result": …}` only if the schema tells it to."""
    assert asyncio.run(asyncio.wait_for(sum_read_by_client(), 40)) == 10
