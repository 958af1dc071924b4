"""Seed 004, what MCP asks of a tool: codes, content types, annotations and the form of errors."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.judges import ROOT
from tests.mcp.wire import Client, over_stdio
from tests.seeds import quotes

CONTENTS = ROOT / "tests" / "apps" / "contents_004.py"
TOOLS = ROOT / "tests" / "seeds" / "tools_004.py"
ERAS = ["2025-11-25", "2026-07-28"]
NEVER_SENT = (-32800, -32801, -32802)
"""The seed's list calls them MCP's; no version of MCP knows them."""


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with over_stdio(CONTENTS, request.param) as client:
        client.open()
        yield client
    assert not {m["error"]["code"] for m, _ in client.heard if "error" in m} & {*NEVER_SENT}


def block(client: Client, name: str) -> Any:
    (found,) = client.ask("tools/call", {"name": name})["result"]["content"]
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


def test_seed_004_an_unknown_tool_is_an_error_of_the_protocol(client: Client) -> None:
    response = client.ask("tools/call", {"name": "invalid_tool_name"})

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
def test_seed_004_what_is_no_request_has_its_code(client: Client, text: bytes, code: int) -> None:
    assert client.send(text)["error"]["code"] == code


def test_seed_004_an_unknown_method_has_its_code(client: Client) -> None:
    assert client.ask("tools/no_such")["error"]["code"] == -32601


def test_seed_004_a_failure_that_is_no_tools_is_an_internal_error(client: Client) -> None:
    assert client.ask("resources/read", {"uri": "seed://away"})["error"]["code"] == -32603


@pytest.mark.parametrize("version", ERAS)
def test_seed_004_a_tools_error_is_a_result_and_its_text_the_message(version: str) -> None:
    with over_stdio(TOOLS, version) as client:
        client.open()
        response = client.ask(
            "tools/call", {"name": "get_weather", "arguments": {"location": "Oslo"}}
        )

    assert "error" not in response
    result = response["result"]
    assert result["isError"] is True
    text = "Failed to fetch weather data: API rate limit exceeded"
    assert result["content"] == [{"type": "text", "text": text}]
    assert "structuredContent" not in result


def test_seed_004_a_cancelled_request_is_answered_with_silence(client: Client) -> None:
    """Not with -32800: after a cancellation nothing more is said of a request."""
    running = client.start("tools/call", {"name": "endless"}, meta={"progressToken": "t"})
    assert next(running)["method"] == "notifications/progress"

    client.tell({"method": "notifications/cancelled", "params": {"requestId": client.last_id}})

    cancelled = client.last_id
    assert block(client, "text")["text"] == "The result text"
    assert cancelled not in [message.get("id") for message, _ in client.heard]


def test_seed_004_what_is_too_large_is_an_invalid_request(client: Client) -> None:
    """Not -32801."""
    huge = {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {"a": "x" * 11_000_000}}

    assert client.send(json.dumps(huge).encode())["error"]["code"] == -32600


@pytest.mark.parametrize("code", NEVER_SENT)
def test_seed_004_codes_that_are_not_mcps_are_nowhere_in_the_source(code: int) -> None:
    source: list[Path] = sorted((ROOT / "src").rglob("*.py"))

    assert source
    assert [path for path in source if str(abs(code)) in path.read_text()] == []
