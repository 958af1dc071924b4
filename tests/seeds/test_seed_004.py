"""Seed 004, what MCP asks of a tool: its checklists, over REST in the `mcp` dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.seeds import quotes

from answerback import App
from answerback.contract import STANDARD

TOOLS = Path(__file__).with_name("tools_004.py")
MCP = "application/vnd.answerback.mcp+json"


@pytest.fixture(scope="module")
def url(serve: Callable[..., Any]) -> Iterator[str]:
    with serve(TOOLS) as server:
        yield f"{server.url}/functions"


@pytest.fixture
def result(ask: Callable[..., Any], url: str) -> Callable[..., Any]:
    """Calls a tool and returns the MCP result; errors without `_meta`, which the seed has not."""

    def call(name: str, /, **arguments: Any) -> Any:
        found = ask(f"{url}/{name}", json.dumps(arguments).encode(), Accept=MCP).json
        assert ("_meta" in found) is found["isError"]
        found.pop("_meta", None)
        return found

    return call


@pytest.fixture
def listed(ask: Callable[..., Any], url: str) -> dict[str, Any]:
    """The entries of the list of tools, by name."""
    return {entry["name"]: entry for entry in ask(url).json}


def test_seed_004_success_response(result: Callable[..., Any]) -> None:
    assert result("get_weather", location="New York") == {
        "content": [{"type": "text", "text": quotes.WEATHER_TEXT_004}],
        "isError": False,
    }


def test_seed_004_error_response(result: Callable[..., Any]) -> None:
    assert result("get_weather", location="Oslo") == {
        "content": [{"type": "text", "text": quotes.RATE_LIMITED_004}],
        "isError": True,
    }


def test_seed_004_the_text_has_the_structured_content_as_json(
    result: Callable[..., Any],
) -> None:
    found = result("get_weather_data", location="New York")

    assert found["structuredContent"] == quotes.WEATHER_004
    assert json.loads(found["content"][0]["text"]) == quotes.WEATHER_004
    assert len(found["content"]) == 1


def test_seed_004_input_schema(listed: dict[str, Any]) -> None:
    entry = listed["get_weather"]

    assert entry["description"] == "Get current weather information for a location"
    assert (
        entry["inputSchema"].items()
        >= {
            "type": "object",
            "properties": {"location": {"type": "string", "description": "City name or zip code"}},
            "required": ["location"],
        }.items()
    )


def test_seed_004_output_schema(listed: dict[str, Any]) -> None:
    schema = listed["get_weather_data"]["outputSchema"]

    assert schema.items() >= quotes.WEATHER_SCHEMA_004.items()


def test_seed_004_contract_invalid_output_is_never_a_success(
    result: Callable[..., Any],
) -> None:
    found = result("bad_output")

    assert found["isError"] is True
    assert "structuredContent" not in found


def test_seed_004_register_tool_example(result: Callable[..., Any], listed: dict[str, Any]) -> None:
    found = result("calculate-bmi", weightKg=80, heightM=2)

    assert found["structuredContent"] == {"bmi": 20.0}
    assert found["content"] == [{"type": "text", "text": '{"bmi":20.0}'}]
    assert listed["calculate-bmi"]["title"] == "BMI Calculator"
    assert listed["calculate-bmi"]["description"] == "Calculate Body Mass Index"


def test_seed_004_handler_pattern_builds_text_and_structured_content(
    result: Callable[..., Any],
) -> None:
    found = result("create_entities", entities=[{"name": "a"}, {"name": "b"}])

    output = {"created": 2, "entities": [{"name": "a"}, {"name": "b"}]}
    assert found["structuredContent"] == output
    assert json.loads(found["content"][0]["text"]) == output
    assert found["isError"] is False


def test_seed_004_handler_pattern_answers_invalid_input_with_an_error_result(
    result: Callable[..., Any],
) -> None:
    found = result("create_entities", entities=[{"title": "a"}])

    assert found["isError"] is True
    assert found["content"][0]["text"].startswith("Invalid arguments: entities[0]")


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("describe_tool", {"name": ""}, "Tool name is required"),
        (
            "get_weather_data",
            {"location": "xyz"},
            "Location 'xyz' not found. Please provide a valid city name or zip code.",
        ),
        ("fetch-weather", {"city": "Atlantis"}, "Weather API returned 503: Service Unavailable"),
    ],
)
def test_seed_004_best_practices_1_and_2_the_caller_gets_the_authors_message(
    tool: str, arguments: dict[str, str], text: str, result: Callable[..., Any]
) -> None:
    assert result(tool, **arguments) == {
        "isError": True,
        "content": [{"type": "text", "text": text}],
    }


def test_seed_004_fetch_weather_example(result: Callable[..., Any], listed: dict[str, Any]) -> None:
    found = result("fetch-weather", city="Oslo")

    assert found["structuredContent"] == {"temperature": 5.0, "conditions": "Cloudy"}
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    assert listed["fetch-weather"]["title"] == "Weather Fetcher"
    assert listed["fetch-weather"]["outputSchema"]["required"] == ["temperature", "conditions"]


@pytest.mark.parametrize(
    ("tool", "count", "names"),
    [("create_entities", "created", "entities"), ("delete_entities", "deleted", "entityNames")],
)
def test_seed_004_checklist_output_schemas_of_entities(
    tool: str, count: str, names: str, listed: dict[str, Any]
) -> None:
    schema = listed[tool]["outputSchema"]

    assert schema["properties"][count] == {"type": "integer", "minimum": 0}
    assert schema["properties"][names]["type"] == "array"
    assert schema["required"] == [count, names]


def test_seed_004_best_practice_4_the_author_chooses_the_masked_message() -> None:
    safe = STANDARD.derive(masked="Operation failed. Please try again.")
    app = App("safe", contract=safe)

    @app.tool
    def operation() -> int:
        raise RuntimeError("hunter2")

    reply = asyncio.run(app.call("operation"))

    assert reply.error is not None
    assert reply.error.message.startswith("Operation failed. Please try again. (reference ")


def test_seed_004_best_practice_3_system_information_does_not_leak(
    result: Callable[..., Any],
) -> None:
    leaking, safe = result("connect"), result("connect_safely")

    assert leaking["isError"] is True
    for secret in ("PostgreSQL", "5432", "admin"):
        assert secret not in json.dumps(leaking)
    text = "Database connection failed. Please try again later."
    assert safe["content"] == [{"type": "text", "text": text}]


def test_seed_004_rule_1_the_text_of_an_error_is_not_json(result: Callable[..., Any]) -> None:
    found = result("get_weather", location="Oslo")

    with pytest.raises(json.JSONDecodeError):
        json.loads(found["content"][0]["text"])


def test_seed_004_rule_2_every_tool_with_data_has_an_output_schema(listed: dict[str, Any]) -> None:
    without = [name for name, entry in listed.items() if "outputSchema" not in entry]

    assert without == ["get_weather"]
    assert all(entry["inputSchema"]["type"] == "object" for entry in listed.values())
