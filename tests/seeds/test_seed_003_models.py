"""Seed 003, its agent: tools become OpenAI's functions, and results become messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.seeds.quotes import ERROR_003, SUCCESS_003
from tests.seeds.test_seed_003 import read_by_the_seeds_agent

from answerback import App
from answerback.models import to_openai


@pytest.fixture
def weather(example: Callable[[str], App]) -> App:
    return example("weather")


def test_seed_003_the_listed_tools_become_functions(weather: App) -> None:
    kit = to_openai(weather)

    assert [each["type"] for each in kit.tools] == ["function"] * len(weather.tools)
    listed = weather.tools["weather"]
    assert kit.tools[0]["function"] == {
        "name": "weather",
        "description": listed.description,
        "parameters": listed.input_schema,
    }


def test_seed_003_the_functions_of_the_first_api_are_the_same_without_their_type(
    weather: App,
) -> None:
    tools = to_openai(weather).tools

    functions = to_openai(weather, functions=True).tools

    assert functions == [each["function"] for each in tools]


@pytest.mark.parametrize("result", [SUCCESS_003, ERROR_003], ids=["success", "error"])
def test_seed_003_the_message_says_what_the_seeds_agent_read(
    result: dict[str, Any], weather: App
) -> None:
    message = to_openai(weather).message("call_1", result)

    assert message.keys() == {"role", "tool_call_id", "content"}
    assert (message["role"], message["tool_call_id"]) == ("tool", "call_1")
    assert _parsed(message["content"]) == _parsed(read_by_the_seeds_agent(result))


def test_seed_003_alternative_2_the_role_function(weather: App) -> None:
    kit = to_openai(weather, functions=True)

    message = kit.message(None, SUCCESS_003, name="weather")

    content = json.loads(message.pop("content"))
    assert message == {"role": "function", "name": "weather"}
    assert content == SUCCESS_003["structuredContent"]


def _parsed(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text
