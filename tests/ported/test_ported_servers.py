"""The ported servers answer; `make ported` compares them with the published servers."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from tests.ported.comparison import ROOT, SERVERS, Server, find_fault_of_error, own_answers


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_ported_server_answers_each_call_or_says_what_is_wrong(server: Server) -> None:
    answers = asyncio.run(own_answers(server))

    pairs = list(zip(server.calls, answers, strict=True))
    refused = [call.tool for call, answer in pairs if call.same is not None and answer.failed]
    faults = [find_fault_of_error(call, answer) for call, answer in pairs if call.same is None]
    assert refused == []
    assert [fault for fault in faults if fault] == []
    assert len(answers) >= 30


def test_the_memo_and_the_prompt_of_the_sqlite_server_are_served(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples/ported/sqlite_server.py"), "mcp"]
    environment = dict(os.environ, DATABASE=str(tmp_path / "test.db"))

    async def read() -> tuple[str, str]:
        server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
        async with Client(server, read_timeout_seconds=30) as client:
            await client.call_tool("append_insight", {"insight": "It rains."})
            memo = (await client.read_resource("memo://insights")).contents[0]
            message = (await client.get_prompt("mcp-demo", {"topic": "ships"})).messages[0]
            assert isinstance(memo, types.TextResourceContents)
            assert isinstance(message.content, types.TextContent)
            return memo.text, message.content.text

    memo, prompt = asyncio.run(read())
    assert "- It rains." in memo
    assert "ships as the topic" in prompt
