"""Seed 001, scenarios 1 and 2: the text of an MCP result is JSON, read by the official client."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from tests.protocol.official_tools import ROOT
from tests.protocol.recording_client import over_stdio

EXAMPLE = str(ROOT / "examples" / "aligned.py")
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


def call(mode: str, name: str, arguments: dict[str, object]) -> tuple[bool, str]:
    """Call a tool of `aligned.py mcp`, as the seed does; whether it failed, and its text."""

    async def run() -> types.CallToolResult:
        server = StdioServerParameters(command=sys.executable, args=[EXAMPLE, "mcp"])
        async with Client(server, mode=mode, read_timeout_seconds=20) as client:
            return await client.call_tool(name, arguments)

    result = asyncio.run(run())
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    assert len(result.content) == 1
    return result.is_error, block.text


@MODES
def test_seed_001_scenario_1_an_mcp_success_is_json(mode: str) -> None:
    failed, text = call(mode, "functions.Add", {"x": 7, "y": 3})

    assert failed is False
    assert text == '{"result":10}'
    assert json.loads(text)["result"] == 10
    assert isinstance(json.loads(text)["result"], int)


@MODES
def test_seed_001_scenario_2_an_mcp_error_is_json(mode: str) -> None:
    failed, text = call(mode, "functions.Add", {"x": "not_a_number", "y": 3})

    assert failed is True
    error = json.loads(text)
    assert list(error) == ["error"]
    assert "x" in error["error"]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("functions.DivMod", {"x": 7, "y": 3}, '{"result0":2,"result1":1}'),
        ("functions.Forget", {}, "{}"),
    ],
)
def test_seed_001_several_results_and_none_are_json_too(
    name: str, arguments: dict[str, object], text: str
) -> None:
    assert call("auto", name, arguments) == (False, text)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("name", ["Add", "functions.add"])
def test_seed_001_an_unknown_tool_names_the_tool_with_its_prefix(name: str, version: str) -> None:
    with over_stdio(Path(EXAMPLE), version) as client:
        client.open()
        error = client.request("tools/call", {"name": name})["error"]

    assert error["message"] == f"Unknown tool: {name}; did you mean 'functions.Add'?"
