"""What the first page says about other frameworks holds for the versions that are installed."""

from __future__ import annotations

import asyncio
import re
from importlib.metadata import version
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from fastmcp import Client as FastMCPClient
from fastmcp import FastMCP
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from mcp import Client
from mcp.server.mcpserver import MCPServer
from tests.docs.page_runner import ROOT

from answerback import App

PAGE = (ROOT / "docs" / "index.md").read_text()


def wrong() -> int:
    return "three"  # type: ignore[return-value]  # the mistake that the page is about


def broken() -> int:
    raise LookupError("the password is 1234")


def large() -> list[str]:
    return ["a line"] * 10_000


def row(name: str) -> list[str]:
    """The cells of a row: Answerback, FastMCP, the SDK, mcpo, FastAPI."""
    found = re.search(rf"^\| \*\*{name}\*\* \| (.+) \|$", PAGE, re.MULTILINE)
    assert found is not None
    return found[1].split(" | ")


async def by_fastmcp(*middleware: Any) -> dict[str, Any]:
    server = FastMCP("others", middleware=middleware)
    for function in (wrong, broken, large):
        server.tool(function)
    async with FastMCPClient(server) as client:
        names = ("wrong", "broken", "large")
        return {name: await client.call_tool_mcp(name, {}) for name in names}


async def by_the_sdk() -> dict[str, Any]:
    server = MCPServer("others")
    for function in (wrong, broken):
        server.tool()(function)
    async with Client(server) as client:
        return {name: await client.call_tool(name, {}) for name in ("wrong", "broken")}


def test_the_page_names_the_versions_that_are_installed() -> None:
    header = re.search(r"^\| \| Answerback \|.+$", PAGE, re.MULTILINE)
    assert header is not None

    for shown, package in [("FastMCP", "fastmcp"), ("official SDK", "mcp"), ("FastAPI", "fastapi")]:
        assert f"| {shown} {version(package)} " in header[0]


def test_fastmcp_sends_a_wrong_result_and_the_sdk_and_fastapi_do_not() -> None:
    _, fastmcp, sdk, _, fastapi = row("a result of the wrong type")

    assert fastmcp == "sent as it is"
    assert asyncio.run(by_fastmcp())["wrong"].structured_content == {"result": "three"}
    assert sdk == fastapi == "an error"
    assert asyncio.run(by_the_sdk())["wrong"].is_error
    assert by_fastapi("/wrong").status_code == 500


def by_fastapi(path: str) -> Any:
    api = FastAPI()
    api.get("/wrong")(wrong)
    api.get("/broken")(broken)
    return TestClient(api, raise_server_exceptions=False).get(path)


def test_fastmcp_shows_an_exception_and_the_sdk_and_fastapi_do_not() -> None:
    shown = asyncio.run(by_fastmcp())["broken"]
    masked = asyncio.run(by_the_sdk())["broken"]

    assert "the password is 1234" in shown.content[0].text
    assert masked.is_error
    assert "password" not in masked.content[0].text
    assert by_fastapi("/broken").text == "Internal Server Error"


def test_the_middleware_of_fastmcp_cuts_the_text_and_drops_the_data() -> None:
    limit = ResponseLimitingMiddleware(max_size=1_000)

    cut = asyncio.run(by_fastmcp(limit))["large"]

    assert cut.structured_content is None
    assert len(cut.content[0].text) < 1_000


@pytest.mark.parametrize("name", ["wrong", "broken"])
def test_an_app_answers_with_an_error_that_shows_nothing_of_the_exception(name: str) -> None:
    app = App("ours")
    app.add_tool(wrong)
    app.add_tool(broken)

    reply = asyncio.run(app.call(name))

    assert reply.error is not None
    assert "password" not in reply.error.message
