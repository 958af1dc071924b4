"""Seed 004: its examples have no findings, and a rule finds each mistake that it describes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.seeds import quotes
from tests.seeds.quotes import WEATHER_004 as WEATHER
from tests.seeds.quotes import WEATHER_SCHEMA_004 as OUTPUT

from answerback import validate
from answerback.rules.reply_view import CheckContext
from answerback.rules.validation import check

INPUT = {"type": "object", "properties": {"location": {"type": "string"}}}


def text(words: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **members}


def block(**members: Any) -> dict[str, Any]:
    return {"content": [members]}


def rules(reply: Any, **options: Any) -> list[str]:
    return [each.rule for each in validate(reply, **options)]


STRUCTURED = text(json.dumps(WEATHER), structuredContent=WEATHER)

CORRECT = [
    text(quotes.RATE_LIMITED_004, isError=True),
    text(quotes.WEATHER_TEXT_004, isError=False),
    STRUCTURED,
    text("Tool name is required", isError=True),
    text("Operation failed. Please try again.", isError=True),
    text("Service temporarily unavailable", isError=True),
    text("Weather API returned 503: Service Unavailable", isError=True),
    text("Location 'xyz' not found. Please provide a valid city name or zip code.", isError=True),
    text("Database connection failed. Please try again later.", isError=True),
    text('NOT_FOUND: no such entity ({"name":"x"})', isError=True),
    block(**quotes.LINK_004),
    block(**quotes.EMBEDDED_004),
    block(**quotes.ANNOTATED_004),
]


@pytest.mark.parametrize("reply", CORRECT)
def test_seed_004_its_examples_have_no_findings(reply: dict[str, Any]) -> None:
    assert validate(reply) == ()


def test_seed_004_the_structured_weather_matches_its_output_schema() -> None:
    assert validate(STRUCTURED, schema=OUTPUT, version="2025-06-18") == ()


def test_seed_004_the_wrong_approach_of_an_error_as_json_text_is_found() -> None:
    wrong = {"success": False, "error": {"code": "ERROR_CODE", "message": "error message"}}

    assert rules(text(json.dumps(wrong))) == ["AB202"]


def test_seed_004_the_golden_rule_a_failure_without_is_error_is_found() -> None:
    assert rules(text(quotes.RATE_LIMITED_004)) == ["AB201"]


@pytest.mark.parametrize("code", [-32603, -32000])
def test_seed_004_the_golden_rule_a_failure_as_protocol_error_is_found(code: int) -> None:
    frame = {"jsonrpc": "2.0", "id": 3, "error": {"code": code, "message": "API is down"}}

    found = check(frame, "mcp", CheckContext(method="tools/call"))

    assert [each.rule for each in found] == ["AB206"]


def test_seed_004_a_protocol_error_for_an_unknown_tool_has_no_findings() -> None:
    error = {"code": -32602, "message": "Unknown tool: invalid_tool_name"}
    frame = {"jsonrpc": "2.0", "id": 3, "error": error}

    assert check(frame, "mcp", CheckContext(method="tools/call")) == ()


def test_seed_004_missing_content_is_found() -> None:
    assert rules({"structuredContent": WEATHER}) == ["AB102"]


def test_seed_004_text_that_is_missing_or_contradicts_the_data_is_found() -> None:
    assert rules({"content": [], "structuredContent": WEATHER}) == ["AB303"]
    assert rules(text('{"temperature": 3}', structuredContent=WEATHER)) == ["AB301"]


def test_seed_004_a_tool_without_an_input_schema_is_found() -> None:
    assert rules({"tools": [{"name": "get_weather"}]}) == ["AB330"]
    assert rules({"tools": [{"name": "get_weather", "inputSchema": INPUT}]}) == []


def test_seed_004_structured_content_that_breaks_the_output_schema_is_found() -> None:
    wrong = {**WEATHER, "humidity": "65 %"}

    found = validate(text(json.dumps(wrong), structuredContent=wrong), schema=OUTPUT)

    assert [(each.rule, each.pointer) for each in found] == [
        ("AB320", "/structuredContent/humidity")
    ]


def test_seed_004_missing_structured_content_of_an_output_schema_is_found() -> None:
    assert rules(text("22.5 °C, partly cloudy, 65 %"), schema=OUTPUT) == ["AB321"]


def test_seed_004_data_without_a_declared_output_schema_gets_a_note() -> None:
    found = check(STRUCTURED, "mcp", CheckContext(listed=True))

    assert [(each.rule, each.severity) for each in found] == [("AB323", "note")]


def test_seed_004_an_error_of_a_tool_with_an_output_schema_needs_no_data() -> None:
    assert rules(text("Failed to fetch weather: no such city", isError=True), schema=OUTPUT) == []


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (block(type="text"), "AB112"),
        (block(type="image", data="aGk=", mimeType=1), "AB112"),
        (block(type="image", data="base64-encoded-image-data", mimeType="image/png"), "AB401"),
        (block(type="audio", data="base64-encoded-audio-data", mimeType="audio/wav"), "AB401"),
        (block(type="resource_link", uri="main.rs", name="main.rs"), "AB404"),
        (block(type="resource_link", uri="file:///main.rs"), "AB112"),
        (block(type="resource", resource={"uri": "file:///main.rs"}), "AB112"),
        (block(type="text", text="x", annotations={"priority": 1.1}), "AB405"),
        (block(type="text", text="x", annotations={"audience": ["model"]}), "AB405"),
        (block(type="text", text="x", annotations={"lastModified": "May 3rd"}), "AB405"),
    ],
)
def test_seed_004_a_wrong_content_block_is_found(reply: dict[str, Any], rule: str) -> None:
    """Images and audio in its examples have a placeholder that is not base64."""
    assert rules(reply) == [rule]


@pytest.mark.parametrize("message", ["Error occurred", "Unknown error"])
def test_seed_004_best_practice_2_a_vague_message_is_found(message: str) -> None:
    assert rules(text(message, isError=True)) == ["AB204"]


def test_seed_004_best_practice_3_leaked_system_information_is_found() -> None:
    message = "PostgreSQL connection refused at localhost:5432 with user 'admin'"

    assert rules(text(message, isError=True)) == ["AB506"]


def test_seed_004_best_practice_4_a_stack_trace_is_found() -> None:
    stack = "Error: no\n    at get (/app/src/db.ts:3:9)\n    at run (/app/src/index.ts:9:1)"

    assert "AB501" in rules(text(stack, isError=True))


def test_seed_004_checklist_a_complex_error_object_is_found() -> None:
    message = json.dumps({"success": False, "error": {"code": "E", "message": "no such entity"}})

    assert rules(text(message, isError=True)) == ["AB207"]


def test_seed_004_checklist_members_of_the_wrong_type_are_found() -> None:
    assert rules(text("x", isError="no")) == ["AB115"]
    assert rules(text("x", structuredContent=[1])) == ["AB310"]
