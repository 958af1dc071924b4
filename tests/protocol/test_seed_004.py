"""Seed 004 over MCP: error codes, content types, annotations and the form of errors."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.official_tools import ROOT
from tests.protocol.recording_client import Client, over_stdio
from tests.seeds import quotes

CONTENTS = ROOT / "tests" / "apps" / "contents_004.py"
TOOLS = ROOT / "tests" / "seeds" / "tools_004.py"
ERAS = ["2025-11-25", "2026-07-28"]
NEVER_SENT = (-32800, -32801, -32802)
"""The seed lists them as MCP's; no version of MCP has them."""


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with over_stdio(CONTENTS, request.param) as client:
        client.open()
        yield client
    assert not {m["error"]["code"] for m, _ in client.received if "error" in m} & {*NEVER_SENT}


def block(client: Client, name: str) -> Any:
    content = client.request("tools/call", {"name": name})["result"]["content"]
    # A text for hosts that do not show links and audio is marked as added.
    (found,) = (each for each in content if "answerback/added" not in each.get("_meta", {}))
    return found


def test_seed_004_content_type_1_text(client: Client) -> None:
    assert block(client, "text") == {"type": "text", "text": "The result text"}


def test_seed_004_content_type_2_image(client: Client) -> None:
    data = base64.b64encode(b"image-data").decode()

    assert block(client, "image") == {"type": "image", "data": data, "mimeType": "image/png"}


def test_seed_004_content_type_3_audio(client: Client) -> None:
    data = base64.b64encode(b"audio-data").decode()

    assert block(client, "audio") == {"type": "audio", "data": data, "mimeType": "audio/wav"}


def test_seed_004_content_type_4_resource_link(client: Client) -> None:
    assert block(client, "link") == quotes.LINK_004


def test_seed_004_content_type_5_embedded_resource(client: Client) -> None:
    assert block(client, "embedded") == quotes.EMBEDDED_004


def test_seed_004_annotations(client: Client) -> None:
    assert block(client, "annotated") == quotes.ANNOTATED_004


def test_seed_004_an_unknown_tool_is_a_protocol_error(client: Client) -> None:
    response = client.request("tools/call", {"name": "invalid_tool_name"})

    assert response == {
        "jsonrpc": "2.0",
        "id": client.last_id,
        "error": {"code": -32602, "message": "Unknown tool: invalid_tool_name"},
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"jsonrpc": "2.0", ', -32700),
        (b'{"id": 3, "method": "tools/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 3}', -32600),
    ],
)
def test_seed_004_a_malformed_request_has_its_code(client: Client, text: bytes, code: int) -> None:
    assert client.send_text(text)["error"]["code"] == code


def test_seed_004_an_unknown_method_has_its_code(client: Client) -> None:
    assert client.request("tools/no_such")["error"]["code"] == -32601


def test_seed_004_a_failing_resource_is_an_internal_error(client: Client) -> None:
    assert client.request("resources/read", {"uri": "seed://away"})["error"]["code"] == -32603


@pytest.mark.parametrize("version", ERAS)
def test_seed_004_the_error_of_a_tool_is_a_result_with_its_message_as_text(version: str) -> None:
    with over_stdio(TOOLS, version) as client:
        client.open()
        response = client.request(
            "tools/call", {"name": "get_weather", "arguments": {"location": "Oslo"}}
        )

    assert "error" not in response
    result = response["result"]
    assert result["isError"] is True
    text = "Failed to fetch weather data: API rate limit exceeded"
    assert result["content"] == [{"type": "text", "text": text}]
    assert "structuredContent" not in result


def test_seed_004_a_cancelled_request_gets_no_response(client: Client) -> None:
    """The seed names -32800 for it; MCP wants no response after a cancellation."""
    running = client.start("tools/call", {"name": "endless"}, meta={"progressToken": "t"})
    assert next(running)["method"] == "notifications/progress"

    client.notify({"method": "notifications/cancelled", "params": {"requestId": client.last_id}})

    cancelled = client.last_id
    assert block(client, "text")["text"] == "The result text"
    assert cancelled not in [message.get("id") for message, _ in client.received]


def test_seed_004_a_request_that_is_too_large_is_an_invalid_request(client: Client) -> None:
    """The seed names -32801 for it, which MCP does not have."""
    huge = {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {"a": "x" * 11_000_000}}

    assert client.send_text(json.dumps(huge).encode())["error"]["code"] == -32600


@pytest.mark.parametrize("code", NEVER_SENT)
def test_seed_004_codes_that_mcp_lacks_are_read_and_never_sent(code: int) -> None:
    source: list[Path] = sorted((ROOT / "src").rglob("*.py"))
    source.remove(ROOT / "src/answerback/reading/foreign_errors.py")

    assert source
    assert [path for path in source if str(abs(code)) in path.read_text()] == []
