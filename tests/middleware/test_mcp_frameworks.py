"""The middleware in servers of FastMCP and of the official SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from examples import guarded_fastmcp, guarded_sdk
from fastmcp import Client as FastMCPClient
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from mcp import Client as SDKClient
from mcp.server.mcpserver import MCPServer

from answerback.middleware import fastmcp, sdk
from answerback.records import JSONL, Records
from answerback.records.event import Event
from answerback.records.reader import StoredRecord, decode, read

TEXT = "Internal server error: Invalid response format"


def call(server: Any, name: str, **arguments: Any) -> Any:
    """Call a tool with the client of the server's framework."""

    async def ask() -> Any:
        if isinstance(server, FastMCP):
            async with FastMCPClient(server) as client:
                return await client.call_tool_mcp(name, arguments)
        async with SDKClient(server) as other:
            return await other.call_tool(name, arguments)

    return asyncio.run(asyncio.wait_for(ask(), 60))


def replies_in(file: Path) -> list[Event]:
    events = [decode(kept) for kept in read(str(file)) if isinstance(kept, StoredRecord)]
    return [event for event in events if event is not None and event.is_reply]


def recorded_server(kind: str, records: Records) -> Any:
    """A server of either framework, with the same tools."""
    server: Any
    if kind == "fastmcp":
        server = FastMCP("x")
        server.add_middleware(fastmcp.ValidReplies(records=records))
    else:
        server = MCPServer("x", middleware=[sdk.ValidReplies(records=records)])

    @server.tool(name="add")  # type: ignore[untyped-decorator]
    def add(x: int, y: int) -> int:
        return x + y

    @server.tool(name="broken")  # type: ignore[untyped-decorator]
    def broken() -> int:
        raise ToolError("no luck")

    return server


EXAMPLES = pytest.mark.parametrize(
    "server", [guarded_fastmcp.server, guarded_sdk.server], ids=["fastmcp", "sdk"]
)


@EXAMPLES
def test_a_valid_result_is_sent_unchanged(server: Any) -> None:
    result = call(server, "weather", city="Oslo")

    assert not result.is_error
    assert result.structured_content == {"city": "Oslo", "conditions": "Cloudy"}


@EXAMPLES
def test_a_result_with_a_secret_is_refused(server: Any) -> None:
    result = call(server, "connect")

    assert result.is_error
    assert result.content[0].text == TEXT
    assert result.meta["answerback/error"]["code"] == "INVALID_RESPONSE_FORMAT"
    assert "Zk3vQ9pLw2" not in result.model_dump_json()


@pytest.mark.parametrize("kind", ["fastmcp", "sdk"])
def test_each_call_is_recorded(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    records = Records(JSONL(file))
    server = recorded_server(kind, records)

    call(server, "add", x=1, y=2)
    call(server, "broken")
    records.close()

    added, failed = replies_in(file)
    assert (added.tool, added.wire, added.code) == ("add", "mcp", "")
    assert added.digest
    assert (failed.tool, bool(failed.code)) == ("broken", True)
