"""The replies that the seeds show; each test is named for the seed it quotes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from tests.seeds import quotes

from answerback.contract import ALIGNED, DIRECT, ENVELOPE, STANDARD, Contract
from answerback.core.content import Annotations, Audio, Block, Embedded, Image, Link, Text
from answerback.core.reply import Error, Reply, failure, success
from answerback.core.shape import BARE, EMPTY, RESULT, SPREAD, Shape
from answerback.dialects import write

NOW = datetime(2025, 5, 3, 14, 30, tzinfo=UTC)


def enveloped(reply: Reply[Any]) -> Any:
    found = json.loads(write(reply, "envelope", BARE, ENVELOPE).body)
    jsonschema.validate(found, quotes.SCHEMA_000)
    return found


def resulting(reply: Reply[Any], shape: Shape, contract: Contract) -> Any:
    """Return the MCP result; an error without `_meta`, which the seeds do not have."""
    found = json.loads(write(reply, "mcp", shape, contract).body)
    assert ("_meta" in found) is found["isError"]
    found.pop("_meta", None)
    return found


def text_of(found: Any) -> Any:
    return found["content"][0]["text"]


def test_seed_000_a_text_response() -> None:
    reply = Reply(
        content=(Text(quotes.STARTED_000["text"]),),
        data=quotes.STARTED_DATA_000,
        timestamp=NOW,
    )

    assert enveloped(reply) == {
        "success": True,
        "timestamp": "2025-05-03T14:30:00Z",
        "content": [quotes.STARTED_000],
        "data": quotes.STARTED_DATA_000,
    }


def test_seed_000_an_image_response() -> None:
    url = "https://example.com/charts/cpu-usage.png"
    alt = "CPU usage chart showing spikes during peak hours"
    caption = "CPU usage for instance-1 over the last 24 hours"
    image = Image(url=url, alt=alt, width=800, height=400, caption=caption)

    found = enveloped(success("Instance CPU usage over time:", content=[image]))

    assert found["content"] == [
        {"type": "text", "text": "Instance CPU usage over time:"},
        quotes.IMAGE_000,
    ]


def test_seed_000_a_resource_response() -> None:
    link = Link(
        "http://localhost:8080",
        "VSCode Web UI",
        kind="url",
        description="Web-based VSCode interface for your instance",
        metadata={"requiresAuth": True, "authType": "password"},
    )

    found = enveloped(success("VSCode instance deployed successfully.", content=[link]))

    assert found["content"][1] == quotes.RESOURCE_000


def test_seed_000_best_practice_5_a_text_and_a_resource() -> None:
    text = "Instance created successfully. Access it using the following URL:"
    link = Link("http://localhost:8080", "VSCode Web Interface", kind="url")

    found = enveloped(success(text, {"instance": {"id": "instance-1"}}, content=[link]))

    assert found["content"] == [
        {"type": "text", "text": text},
        {
            "type": "resource",
            "resourceType": "url",
            "identifier": "http://localhost:8080",
            "name": "VSCode Web Interface",
        },
    ]
    assert found["data"] == {"instance": {"id": "instance-1"}}


def test_seed_000_pitfall_2_an_error_with_its_details() -> None:
    details = {"instanceId": "instance-1"}

    found = enveloped(failure("Instance not found", code="INSTANCE_NOT_FOUND", details=details))

    assert text_of(found) == "Error: Instance not found"
    assert found["error"] == {
        "code": "INSTANCE_NOT_FOUND",
        "message": "Instance not found",
        "details": {"instanceId": "instance-1"},
    }


def test_seed_000_an_error_response() -> None:
    details = {"instanceId": "instance-1", "availableInstances": ["instance-2", "instance-3"]}
    error = Error("INSTANCE_NOT_FOUND", "Instance 'instance-1' not found", details)

    assert enveloped(Reply(error=error, timestamp=NOW)) == {
        "success": False,
        "timestamp": "2025-05-03T14:30:00Z",
        "content": [{"type": "text", "text": "Error: Instance 'instance-1' not found"}],
        "error": {
            "code": "INSTANCE_NOT_FOUND",
            "message": "Instance 'instance-1' not found",
            "details": {
                "instanceId": "instance-1",
                "availableInstances": ["instance-2", "instance-3"],
            },
        },
    }


def test_seed_000_create_success_response_renders_data_as_text() -> None:
    found = enveloped(success(data={"instance": {"name": "vscode-1", "status": "running"}}))

    assert text_of(found) == "Instance: vscode-1\nStatus: running"
    assert found["data"] == {"instance": {"name": "vscode-1", "status": "running"}}


def test_seed_000_create_error_response_without_details() -> None:
    found = enveloped(failure("Instance not found"))

    assert text_of(found) == "Error: Instance not found"
    assert found["error"] == {"code": "UNKNOWN_ERROR", "message": "Instance not found"}


def test_seed_000_a_success_without_content_and_data_has_a_text() -> None:
    assert text_of(enveloped(success())) == "Operation completed successfully"


@pytest.mark.parametrize("block", [Image(b"png", "image/png"), Embedded("file:///a", text="a")])
def test_seed_000_blocks_have_the_members_that_it_requires(block: Block) -> None:
    found = enveloped(success(content=[block]))

    required = {"image": {"url", "altText"}, "resource": {"resourceType", "identifier", "name"}}
    [item] = found["content"]
    assert required[item["type"]] <= item.keys()


@pytest.mark.parametrize("dialect", ["mcp", "envelope"])
def test_seed_000_the_mcp_result_has_the_members_of_the_envelope(dialect: Any) -> None:
    reply = Reply(data={"id": 1}, timestamp=NOW)

    found = json.loads(write(reply, dialect, BARE, ENVELOPE).body)

    jsonschema.validate(found, quotes.SCHEMA_000)
    assert found["success"] is True
    assert found["timestamp"] == "2025-05-03T14:30:00Z"
    assert found["data"] == {"id": 1}


@pytest.mark.parametrize(
    ("data", "shape", "text"),
    [
        (10, RESULT, '{"result":10}'),
        ("ten", RESULT, '{"result":"ten"}'),
        ({"a": 1}, RESULT, '{"result":{"a":1}}'),
        ((10, 20), SPREAD, '{"result0":10,"result1":20}'),
        (None, EMPTY, "{}"),
    ],
)
def test_seed_001_the_mcp_text_is_the_http_body(data: Any, shape: Shape, text: str) -> None:
    found = resulting(success(data=data), shape, ALIGNED)
    written = write(success(data=data), "rest", shape, ALIGNED)

    assert text_of(found) == text
    assert found["isError"] is False
    assert written.body.decode() == text
    assert written.media_type == "application/json"


def test_seed_001_the_json_comes_before_a_text_of_the_author() -> None:
    found = resulting(success("The sum is ten.", 10), RESULT, ALIGNED)

    assert [block["text"] for block in found["content"]] == ['{"result":10}', "The sum is ten."]


def test_seed_001_an_error_is_the_same_json_on_mcp_and_on_http() -> None:
    reply = failure("Invalid JSON body", code="INVALID_JSON")

    found = resulting(reply, RESULT, ALIGNED)
    written = write(reply, "rest", RESULT, ALIGNED)

    assert found["isError"] is True
    assert text_of(found) == '{"error":"Invalid JSON body"}'
    assert written.body == b'{"error":"Invalid JSON body"}'
    assert (written.status, written.media_type) == (400, "application/json")


def test_seed_001_an_unknown_function_is_404() -> None:
    reply = failure("Function not found: NonExistent", code="TOOL_NOT_FOUND")

    written = write(reply, "rest", RESULT, ALIGNED)

    assert written.status == 404
    assert written.body == b'{"error":"Function not found: NonExistent"}'


def test_seed_003_a_success_has_three_fields_and_indented_text() -> None:
    data = {"temperature": 5, "conditions": "Skyet, 5 °C på Røros", "wind": []}

    found = resulting(success(data=data), BARE, DIRECT)

    assert found == {
        "content": [{"type": "text", "text": json.dumps(data, ensure_ascii=False, indent=2)}],
        "structuredContent": data,
        "isError": False,
    }


def test_seed_003_a_text_of_the_author_comes_first() -> None:
    data = {"temperature": 5, "conditions": "Cloudy", "humidity": 78, "wind_speed": 12}

    found = resulting(success("Temperature in Oslo: 5°C, Cloudy", data), BARE, DIRECT)

    assert found["content"][0] == {"type": "text", "text": "Temperature in Oslo: 5°C, Cloudy"}
    assert found["structuredContent"] == data
    assert found["isError"] is False


def test_seed_003_an_error_has_two_fields_and_a_prefix() -> None:
    found = resulting(failure("Location not found"), BARE, DIRECT)

    assert found == {
        "content": [{"type": "text", "text": "Error: Location not found"}],
        "isError": True,
    }


def test_seed_004_a_success() -> None:
    text = quotes.WEATHER_TEXT_004

    found = resulting(success(text), RESULT, STANDARD)

    assert found == {"content": [{"type": "text", "text": text}], "isError": False}


def test_seed_004_an_error() -> None:
    message = quotes.RATE_LIMITED_004

    found = resulting(failure(message), RESULT, STANDARD)

    assert found == {"isError": True, "content": [{"type": "text", "text": message}]}


def test_seed_004_structured_content_and_its_text() -> None:
    data = quotes.WEATHER_004

    found = resulting(success(data=data), BARE, STANDARD)

    text = '{"temperature":22.5,"conditions":"Partly cloudy","humidity":65}'
    assert text_of(found) == text
    assert found["structuredContent"] == data


def test_seed_004_the_five_content_types(validate_result: Callable[[bytes, str], None]) -> None:
    uri = "file:///project/src/main.rs"
    link = Link(uri, "main.rs", description="Primary application entry point", mime="text/x-rust")
    embedded = Embedded(uri, quotes.RUST_004, mime="text/x-rust", title="Project Rust Main File")
    blocks: list[Block] = [Image(b"png", "image/png"), Audio(b"wav", "audio/wav"), link, embedded]
    reply: Reply[Any] = success("The result text", content=blocks)

    written = write(reply, "mcp", RESULT, STANDARD).body

    validate_result(written, "2025-11-25")
    assert json.loads(written)["content"] == [
        {"type": "text", "text": "The result text"},
        {"type": "image", "data": "cG5n", "mimeType": "image/png"},
        {"type": "audio", "data": "d2F2", "mimeType": "audio/wav"},
        quotes.LINK_004,
        quotes.EMBEDDED_004,
    ]


def test_seed_004_annotations() -> None:
    notes = Annotations(audience=("user",), priority=0.9, last_modified="2025-05-03T14:30:00Z")

    found = resulting(
        success(content=[Text("Important result", annotations=notes)]), RESULT, STANDARD
    )

    assert found["content"][0] == quotes.ANNOTATED_004


@pytest.mark.parametrize(
    ("details", "text"),
    [
        (None, "ENTITY_NOT_FOUND: no such entity"),
        ({"name": "x"}, 'ENTITY_NOT_FOUND: no such entity ({"name":"x"})'),
    ],
)
def test_seed_004_to_mcp_message(details: Any, text: str) -> None:
    reply = failure("no such entity", code="ENTITY_NOT_FOUND", details=details)

    found = resulting(reply, RESULT, STANDARD.derive(error_text="coded"))

    assert text_of(found) == text
