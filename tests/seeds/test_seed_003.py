"""Seed 003, the MCP result over plain HTTP: its two curl tests and the fields of its results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.seeds.quotes import ERROR_003, SUCCESS_003
from tests.seeds.quotes import OSLO_003 as OSLO

from answerback import App
from answerback.contract import DIRECT
from answerback.dialects import write

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "weather.py"


@pytest.fixture(scope="module")
def url(serve: Callable[..., Any]) -> Iterator[str]:
    with serve(EXAMPLE) as server:
        yield server.url


@pytest.fixture
def weather(ask: Callable[..., Any], url: str) -> Callable[[str], Any]:
    """Sends `POST /weather`, as the seed's curl commands do."""
    return lambda city: ask(f"{url}/weather", json.dumps({"location": city}).encode())


def read_by_the_seeds_agent(result: dict[str, Any]) -> str:
    """The seed's own code, word for word but for its comments."""
    if result.get("isError"):
        tool_response = result["content"][0]["text"]
    else:
        if "structuredContent" in result:
            tool_response = json.dumps(result["structuredContent"])
        else:
            tool_response = result["content"][0]["text"]
    assert isinstance(tool_response, str)
    return tool_response


def test_seed_003_success_curl(weather: Callable[[str], Any]) -> None:
    answer = weather("Oslo")

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == SUCCESS_003


def test_seed_003_error_curl(weather: Callable[[str], Any]) -> None:
    answer = weather("NonexistentCity12345")

    assert answer.status == 404
    assert answer.headers["content-type"] == "application/json"
    found = answer.json
    del found["_meta"]
    assert found == ERROR_003


def test_seed_003_structured_content_has_the_example_values(weather: Callable[[str], Any]) -> None:
    structured = weather("Oslo").json["structuredContent"]

    assert (
        structured.items()
        >= {
            "temperature": 5,
            "conditions": "Cloudy",
            "humidity": 78,
            "wind_speed": 12,
        }.items()
    )


def test_seed_003_non_ascii_letters_are_kept_in_the_text(weather: Callable[[str], Any]) -> None:
    answer = weather("tromsø")

    assert '"location": "Tromsø"' in answer.json["content"][0]["text"]
    assert "Tromsø".encode() in answer.body


def test_seed_003_the_agent_reads_a_success_as_its_data(weather: Callable[[str], Any]) -> None:
    assert json.loads(read_by_the_seeds_agent(weather("Oslo").json)) == OSLO


def test_seed_003_the_agent_reads_an_error_as_its_text(weather: Callable[[str], Any]) -> None:
    read = read_by_the_seeds_agent(weather("NonexistentCity12345").json)

    assert read == "Error: Location not found: NonexistentCity12345"


def test_seed_003_malformed_json_is_an_error_result(ask: Callable[..., Any], url: str) -> None:
    answer = ask(f"{url}/weather", b'{"location": ')

    assert answer.status == 400
    assert answer.json["isError"] is True
    assert answer.json["content"] == [{"type": "text", "text": "Error: Invalid JSON body"}]


def test_seed_003_cgi_sends_the_same_result(cgi: Callable[..., Any]) -> None:
    answer = cgi("weather", "/weather", b'{"location": "Oslo"}')

    assert answer.status == 200
    assert answer.json["structuredContent"] == OSLO
    assert answer.json["isError"] is False


def test_seed_003_the_shell_prints_the_three_fields(shell: Callable[..., Any]) -> None:
    answer = shell("weather", "call", "weather", "location=Oslo", "--dialect", "mcp")

    assert list(answer.json) == ["content", "structuredContent", "isError"]
    assert answer.json["structuredContent"] == OSLO


def test_seed_003_an_unexpected_exception_is_an_error_result_without_its_message() -> None:
    """The seed sends `str(e)`; here the caller gets a reference, after the same prefix."""

    def weather(location: str) -> dict[str, float]:
        raise TimeoutError("no answer from http://admin:hunter2@weather.internal")

    app = App("weather", contract="direct")
    tool = app.add_tool(weather)
    written = write(asyncio.run(app.call("weather", location="Oslo")), "mcp", tool.shape, DIRECT)

    found = json.loads(written.body)
    assert written.status == 500
    assert found["isError"] is True
    assert "structuredContent" not in found
    assert found["content"][0]["text"].startswith("Error: ")
    assert b"hunter2" not in written.body
