"""What the first page says about other frameworks holds for the versions that are installed."""

from __future__ import annotations

import asyncio
import math
import re
from importlib.metadata import version
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from fastmcp import FastMCP
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from tests.docs.page_runner import ROOT

from answerback import App

PAGE = (ROOT / "docs" / "index.md").read_text()


def wrong() -> int:
    return "three"  # type: ignore[return-value]  # the mistake that the page is about


def nan() -> dict[str, float]:
    return {"share": math.nan}


def broken() -> int:
    raise LookupError("the password is 1234")


def large() -> list[str]:
    return ["a line"] * 10_000


def row(name: str) -> list[str]:
    """The cells of a row: Answerback, FastMCP, the SDK, mcpo, FastAPI."""
    found = re.search(rf"^\| \*\*{name}\*\* \| (.+) \|$", PAGE, re.MULTILINE)
    assert found is not None
    return found[1].split(" | ")


def by_fastmcp(tool: Any, *middleware: Any) -> Any:
    server = FastMCP("others", middleware=middleware)
    server.tool(tool)
    return asyncio.run(server.call_tool(tool.__name__, {}))


def by_the_sdk(tool: Any) -> Any:
    server = MCPServer("others")
    server.tool()(tool)
    try:
        return asyncio.run(server.call_tool(tool.__name__, {}))
    except ToolError as error:
        # Over a wire, the text of the exception is sent.
        return error


def by_fastapi(function: Any) -> Any:
    api = FastAPI()
    api.get("/")(function)
    return TestClient(api, raise_server_exceptions=False).get("/")


def by_us(tool: Any) -> Any:
    app = App("ours")
    app.add_tool(tool)
    return asyncio.run(app.call(tool.__name__))


def test_the_page_names_the_versions_that_are_installed() -> None:
    header = re.search(r"^\| \| Answerback \|.+$", PAGE, re.MULTILINE)
    assert header is not None

    for shown, package in [("FastMCP", "fastmcp"), ("official SDK", "mcp"), ("FastAPI", "fastapi")]:
        assert f"| {shown} {version(package)} " in header[0]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_only_fastmcp_sends_a_result_of_the_wrong_type() -> None:
    ours, fastmcp, sdk, _, fastapi = row("a result of the wrong type")

    assert fastmcp.startswith("sent")
    assert by_fastmcp(wrong).structured_content == {"result": "three"}
    assert sdk == fastapi == "an error"
    assert isinstance(by_the_sdk(wrong), ToolError)
    assert by_fastapi(wrong).status_code == 500
    assert ours == "an error on every wire"
    assert by_us(wrong).error is not None


def test_the_others_send_null_for_nan() -> None:
    ours, fastmcp, sdk, _, fastapi = row("a `NaN`")

    assert fastmcp == sdk == "`null`, although the schema says number"
    assert by_fastmcp(nan).structured_content == {"share": None}
    assert '"structuredContent":{"share":null}' in by_the_sdk(nan).model_dump_json(by_alias=True)
    assert fastapi == "`null`"
    assert by_fastapi(nan).json() == {"share": None}
    assert ours.startswith("an error")
    assert by_us(nan).error is not None


def test_only_fastmcp_shows_an_unexpected_exception() -> None:
    with pytest.raises(Exception, match="the password is 1234"):
        by_fastmcp(broken)
    masked = by_the_sdk(broken)
    assert isinstance(masked, ToolError)
    assert "password" not in str(masked)
    assert by_fastapi(broken).text == "Internal Server Error"
    assert "password" not in by_us(broken).error.message


def test_the_middleware_of_fastmcp_cuts_the_text_and_drops_the_data() -> None:
    cut = by_fastmcp(large, ResponseLimitingMiddleware(max_size=1_000))

    assert cut.structured_content is None
    assert len(cut.content[0].text) < 1_000
