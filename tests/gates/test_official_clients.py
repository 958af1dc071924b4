"""Official clients understand every refusal of a gate, in both eras."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import msgspec
import pytest
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import UrlElicitationRequiredError
from tests.conftest import ROOT, serving
from tests.protocol.official_tools import node_command, node_environment

APP = ROOT / "tests" / "apps" / "gated_for_clients.py"
SCRIPT = Path(__file__).parent / "gate_client.mjs"
KEY = "ab_0123456789abcdefghijklmnopqrstuvwxyz"
PAGE = "https://bank.example.com/link"
TOOLS = ["balance", "pay", "accounts"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(APP) as server:
        yield f"{server.url}/mcp"


@asynccontextmanager
async def connected(url: str, mode: str, key: str = "", **options: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=20, **options) as client:
            yield client


MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@MODES
def test_the_python_client_reads_refusals_and_results(url: str, mode: str) -> None:
    async def report() -> dict[str, Any]:
        async with connected(url, mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            with pytest.raises(MCPError) as refused:
                await client.call_tool("balance", {"account": "a"})
        async with connected(url, mode, KEY) as client:
            served = await client.call_tool("balance", {"account": "a"})
            with pytest.raises(MCPError) as step_up:
                await client.call_tool("pay", {"amount": 1})
            unlinked = await client.call_tool("accounts")
        return {
            "tools": tools,
            "codes": [each.value.error.data for each in (refused, step_up)],
            "served": served.structured_content,
            "unlinked": (unlinked.is_error, (unlinked.meta or {})["answerback/refusal"]["code"]),
        }

    assert asyncio.run(report()) == {
        "tools": TOOLS,
        "codes": [{"code": "LOGIN_REQUIRED"}, {"code": "SCOPE_REQUIRED"}],
        "served": {"a": 7},
        "unlinked": (True, "LINK_REQUIRED"),
    }


@MODES
def test_the_python_client_is_asked_to_open_the_page(url: str, mode: str) -> None:
    opened: list[str] = []

    async def accept(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        opened.append(params.url.partition("?")[0])
        return types.ElicitResult(action="accept")

    async def call() -> Any:
        async with connected(url, mode, KEY, elicitation_callback=accept) as client:
            try:
                return await client.call_tool("accounts")
            except MCPError as exc:
                return UrlElicitationRequiredError.from_error(exc.error)

    found = asyncio.run(call())

    if mode == "legacy":
        assert found.elicitations[0].url.startswith(f"{PAGE}?token=")
        assert opened == []
    else:
        assert found.is_error
        assert opened == [PAGE]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_typescript_client_reads_refusals_and_results(
    url: str, tmp_path: Path, mode: str
) -> None:
    done = subprocess.run(
        node_command(SCRIPT, mode, url, KEY),
        env=node_environment(tmp_path),
        capture_output=True,
        timeout=60,
    )

    assert done.stderr.decode() == ""
    report = msgspec.json.decode(done.stdout)
    assert report["tools"] == TOOLS
    assert report["anonymous"]["failed"] is True
    assert report["anonymous"]["status"] == 401
    assert report["anna"] == {"isError": False}
    assert report["stepUp"]["needsScope"] is True
    assert report["unlinked"] == {"isError": True, "code": "LINK_REQUIRED"}
    if mode == "legacy":
        assert (report["asked"]["code"], report["asked"]["url"]) == (-32042, PAGE)
    else:
        assert report["asked"] == {"isError": True, "code": "LINK_REQUIRED"}
        assert report["opened"] == [["url", PAGE]]
