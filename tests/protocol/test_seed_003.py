"""Seed 003, its three fields over MCP, with the official client and with `POST /message`."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from tests.conftest import serving
from tests.protocol.official_tools import ROOT
from tests.seeds.quotes import ERROR_003 as ERROR
from tests.seeds.quotes import SUCCESS_003 as SUCCESS

EXAMPLE = ROOT / "examples" / "weather.py"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(EXAMPLE) as server:
        yield server.url


def by_client(url: str, mode: str, city: str) -> Any:
    async def run() -> Any:
        async with Client(f"{url}/mcp", mode=mode, read_timeout_seconds=20) as client:
            result = await client.call_tool("weather", {"location": city})
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    return _the_three_fields(asyncio.run(run()))


def by_message(url: str, city: str) -> Any:
    params = {"name": "weather", "arguments": {"location": city}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    request = urllib.request.Request(
        f"{url}/message", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.headers["Content-Type"] == "application/json"
        return _the_three_fields(json.load(response)["result"])


def _the_three_fields(result: Any) -> Any:
    known = ("content", "structuredContent", "isError")
    assert set(result) <= {*known, "_meta", "resultType"}
    return {name: result[name] for name in known if name in result}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_seed_003_a_client_reads_the_three_fields(url: str, mode: str) -> None:
    assert by_client(url, mode, "Oslo") == SUCCESS
    assert by_client(url, mode, "NonexistentCity12345") == ERROR


def test_seed_003_a_message_without_a_handshake_gets_the_same_fields(url: str) -> None:
    assert by_message(url, "Oslo") == SUCCESS
    assert by_message(url, "NonexistentCity12345") == ERROR


def test_seed_003_letters_beyond_ascii_are_kept(url: str) -> None:
    assert '"location": "Tromsø"' in by_message(url, "tromsø")["content"][0]["text"]
