"""`read` takes a reply from any object: JSON, models of SDKs, HTTP responses, our own values."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
import pytest
from fastmcp import Client, FastMCP
from mcp import MCPError
from mcp_types import CallToolResult, ErrorData, ImageContent, JSONRPCError, TextContent
from pydantic import BaseModel, ConfigDict, Field

from answerback import App, Audio, Embedded, Image, Text, failure, read, success
from answerback.contract import ENVELOPE, STANDARD
from answerback.core.shape import BARE
from answerback.dialects import write

OSLO = {"city": "Oslo", "temperature": 5}
RESULT = {
    "content": [{"type": "text", "text": json.dumps(OSLO)}],
    "structuredContent": OSLO,
    "isError": False,
}


@pytest.mark.parametrize(
    "source",
    [
        RESULT,
        json.dumps(RESULT),
        json.dumps(RESULT).encode(),
        bytearray(json.dumps(RESULT).encode()),
        b"\xef\xbb\xbf" + json.dumps(RESULT).encode(),
        {"jsonrpc": "2.0", "id": 1, "result": RESULT},
        json.dumps([{"jsonrpc": "2.0", "id": 1, "result": RESULT}]),
        {"content": RESULT["content"], "structured_content": OSLO, "is_error": False},
        {**RESULT, "success": True, "timestamp": "2026-01-31T12:00:00Z", "data": OSLO},
    ],
)
def test_a_result_is_read_in_every_form_of_json(source: Any) -> None:
    reply = read(source)

    assert reply.ok
    assert reply.data == OSLO
    assert reply.data_from == "structuredContent"
    assert reply.content == (Text(json.dumps(OSLO)),)


def test_a_result_of_the_sdk_is_read() -> None:
    picture = ImageContent(type="image", data="R0lGODlh", mime_type="image/gif")
    result = CallToolResult(
        content=[TextContent(type="text", text="cold"), picture], structured_content=OSLO
    )

    reply = read(result)

    assert reply.data == OSLO
    assert reply.content == (Text("cold"), Image(b"GIF89a", "image/gif"))


def test_a_dumped_result_of_the_sdk_is_read() -> None:
    picture = ImageContent(type="image", data="R0lGODlh", mime_type="image/gif")

    reply = read(CallToolResult(content=[picture], is_error=False).model_dump())

    assert reply.content == (Image(b"GIF89a", "image/gif"),)


class OldResult(BaseModel):
    """A result as the SDK 1.x has it: with MCP's names for its fields."""

    model_config = ConfigDict(extra="allow")
    meta: dict[str, Any] | None = Field(alias="_meta", default=None)
    content: list[TextContent]
    structuredContent: dict[str, Any] | None = None  # noqa: N815 -- the name of the SDK
    isError: bool = False  # noqa: N815 -- the name of the SDK


def test_a_result_of_the_sdk_1_is_read() -> None:
    result = OldResult(content=[TextContent(type="text", text="no")], isError=True, _meta={"k": 1})

    reply = read(result)

    assert reply.error is not None
    assert reply.error.message == "no"
    assert reply.meta == {"k": 1}


def test_the_pair_that_the_sdk_returns_is_read() -> None:
    reply = read(([TextContent(type="text", text="cold")], OSLO))

    assert reply.data == OSLO
    assert reply.content == (Text("cold"),)


def test_a_list_of_blocks_is_read_as_content() -> None:
    assert read([TextContent(type="text", text="cold")]).content == (Text("cold"),)
    assert read([Text("cold"), Image(b"GIF89a", "image/gif")]).content[0] == Text("cold")
    assert read([{"type": "text", "text": "cold", "row": 1}]).data_from == "body"


@pytest.mark.parametrize(
    "source",
    [
        MCPError(-32602, "Unknown tool: x"),
        ErrorData(code=-32602, message="Unknown tool: x"),
        JSONRPCError(jsonrpc="2.0", id=1, error=ErrorData(code=-32602, message="Unknown tool: x")),
    ],
)
def test_an_error_of_the_sdk_is_read(source: Any) -> None:
    reply = read(source)

    assert reply.error is not None
    assert reply.error.code == "TOOL_NOT_FOUND"
    assert reply.error.message == "Unknown tool: x"


async def _fastmcp_results() -> dict[str, Any]:
    server: FastMCP[Any] = FastMCP("weather")

    @server.tool
    def number() -> int:
        return 5

    @server.tool
    def result() -> dict[str, int]:
        return {"result": 5}

    @server.tool
    def broken() -> int:
        raise ValueError("no weather")

    async with Client(server) as client:
        called = {
            name: await client.call_tool(name, raise_on_error=False)
            for name in ("number", "result", "broken")
        }
    return called


def test_a_result_of_fastmcps_client_is_read() -> None:
    results = asyncio.run(asyncio.wait_for(_fastmcp_results(), 60))

    replies = {name: read(result) for name, result in results.items()}

    assert replies["number"].data == 5
    assert replies["result"].data == {"result": 5}
    assert replies["broken"].error is not None
    assert "no weather" in replies["broken"].error.message


@dataclass
class ParsedResult:
    """The result of an older client of FastMCP, without the marker in `meta`."""

    content: list[Any]
    structured_content: dict[str, Any] | None
    data: Any
    is_error: bool = False


def test_a_parsed_result_without_a_marker_is_unwrapped_as_the_client_did() -> None:
    assert read(ParsedResult([], {"result": [1]}, [1])).data == [1]
    assert read(ParsedResult([], {"result": 5}, {"result": 5})).data == {"result": 5}


@pytest.mark.parametrize("dialect", ["mcp", "rest", "envelope", "problem"])
@pytest.mark.parametrize("library", [httpx, httpx2])
def test_an_http_response_is_read_in_every_dialect(library: Any, dialect: Any) -> None:
    contract = ENVELOPE if dialect == "envelope" else STANDARD
    good = write(success(data=OSLO), dialect, BARE, contract)
    unknown = failure("no such city", "CITY_UNKNOWN", kind="NOT_FOUND", hint="try Oslo")
    bad = write(unknown, dialect, BARE, contract)

    replies = [
        read(
            library.Response(
                each.status,
                content=each.body,
                headers=[*each.headers, ("content-type", each.media_type)],
            )
        )
        for each in (good, bad)
    ]

    assert replies[0].data == OSLO
    assert replies[1].error is not None
    assert replies[1].error.code == "CITY_UNKNOWN"
    assert replies[1].error.message == "no such city"
    assert replies[1].error.hint == "try Oslo"
    assert replies[1].error.row.status == 404


@pytest.mark.parametrize(
    ("status", "media_type", "body", "code", "message"),
    [
        (404, "application/json", b'{"detail":"Not Found"}', "NOT_FOUND", "Not Found"),
        (429, "text/plain", b"slow down", "RATE_LIMITED", "slow down"),
        (429, "application/json", b'{"error":"slow down"}', "RATE_LIMITED", "slow down"),
        (409, "application/json", b'{"success":false,"message":"taken"}', "CONFLICT", "taken"),
        (503, "text/html", b"", "UNAVAILABLE", "HTTP status 503"),
        (500, "application/json", b'{"error":', "UNKNOWN_ERROR", '{"error":'),
        (401, "application/problem+json", b'{"title":"No token"}', "UNAUTHENTICATED", "No token"),
        (400, "application/json", b'{"data":{"a":1}}', "INVALID_INPUT", '{"data":{"a":1}}'),
        (200, "application/json", b'{"success":false,"error":"no"}', "UNKNOWN_ERROR", "no"),
        (200, "application/json", b'{"jsonrpc":', "INVALID_RESPONSE_FORMAT", None),
    ],
)
def test_a_failed_http_response_is_a_failure(
    status: int, media_type: str, body: bytes, code: str, message: str | None
) -> None:
    response = httpx.Response(status, content=body, headers={"content-type": media_type})

    reply = read(response)

    assert reply.error is not None
    assert reply.error.code == code
    assert message is None or reply.error.message == message
    assert (reply.raw.status, reply.raw.body) == (status, body)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_that_was_not_followed_is_a_failure(status: int) -> None:
    reply = read(httpx.Response(status, headers={"location": "https://example.com/mcp"}))

    assert reply.error is not None
    assert reply.error.code == "INVALID_RESPONSE_FORMAT"
    assert reply.error.message == (
        f"the server responded with {status} and no reply; it redirects to 'https://example.com/mcp'"
    )


def test_a_code_of_the_servers_own_has_the_status_of_the_response() -> None:
    reply = read(httpx.Response(404, json={"error": {"code": "CITY_UNKNOWN", "message": "no"}}))

    assert reply.error is not None
    assert reply.error.code == "CITY_UNKNOWN"
    assert reply.error.row.status == 404


def test_a_body_that_is_data_is_the_data() -> None:
    reply = read(httpx.Response(200, json=[OSLO]))

    assert reply.data == [OSLO]
    assert reply.data_from == "body"


def test_a_picture_and_other_bytes_are_content() -> None:
    picture = httpx.Response(200, content=b"GIF89a", headers={"content-type": "image/gif"})
    file = httpx.Response(200, content=b"%PDF", headers={"content-type": "application/pdf"})

    assert read(picture).content == (Image(b"GIF89a", "image/gif"),)
    assert read(file).content == (Embedded("about:blank", blob=b"%PDF", mime="application/pdf"),)
    assert read(httpx.Response(204)).ok


def test_the_response_in_a_stream_of_events_is_read() -> None:
    events = [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "id": 1, "result": RESULT},
    ]
    body = ": ping\r\n\r\n" + "".join(f"event: message\ndata: {json.dumps(e)}\n\n" for e in events)
    headers = {"content-type": "text/event-stream"}

    assert read(httpx.Response(200, text=body, headers=headers)).data == OSLO
    assert not read(httpx.Response(200, text=": ping\n\n", headers=headers)).ok


@pytest.mark.parametrize("start", ["event: message\n", "id: 7\n", ": ping\n\n", ""])
def test_a_stream_of_events_as_text_is_read_like_its_response(start: str) -> None:
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": True}}
    body = f"{start}data: {json.dumps(result)}\n\n"

    assert [read(body).ok, read(body.encode()).ok] == [False, False]
    assert read("data: 5 MB\n\n").content == (Text("data: 5 MB\n\n"),)


def test_a_response_whose_body_was_not_read_says_so() -> None:
    response = httpx.Response(200, stream=httpx.ByteStream(b"{}"))

    reply = read(response)

    assert reply.error is not None
    assert "was not read" in reply.error.message


@dataclass
class Weather:
    city: str


def test_values_of_our_own_are_read() -> None:
    app = App("weather")
    app.add_tool(lambda: OSLO, name="oslo")
    called = asyncio.run(app.call("oslo"))

    assert read(called) is called
    assert read(called.to("mcp")).data == OSLO
    assert read(called.to("envelope")).data == OSLO
    assert read(Weather("Oslo")).data == {"city": "Oslo"}
    assert read(5).data == 5


def test_audio_is_read_as_bytes() -> None:
    block = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}

    assert read({"content": [block]}).content == (Audio(b"RIFF", "audio/wav"),)


def test_an_object_that_holds_no_reply_is_a_failure() -> None:
    for value in (None, object(), ValueError("no"), "", b"", b"\xff\xfe"):
        reply = read(value)

        assert reply.error is not None
        assert reply.error.code == "INVALID_RESPONSE_FORMAT"
        assert reply.error.details["findings"]
