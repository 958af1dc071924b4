"""Seed 003, server and agent together: its code on one side, `connect` and `read` on the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.seeds.quotes import ERROR_003, OSLO_003, SUCCESS_003
from tests.seeds.test_seed_003 import read_by_the_seeds_agent

from answerback import App, RateLimited, Text, Unauthenticated, connect, read
from answerback.client.blocking import BlockingServer
from answerback.models import to_openai

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "weather.py"
BUSINESS = ["Location not found", "Invalid API key", "Rate limit exceeded"]
INFRASTRUCTURE = [TimeoutError("Network timeout"), OSError("Server crash")]


def get_weather(location: str) -> dict[str, Any]:
    """Stands in for the service behind the seed's server."""
    return OSLO_003 if location == "Oslo" else {"error": location}


def weather(location: str):  # type: ignore[no-untyped-def]  # as the seed writes it
    """Get the weather; the returns are those of the seed's server, lines 558 to 581."""
    result = get_weather(location)
    if "error" in result:
        return {
            "content": [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}],
            "isError": True,
        }
    return {
        "content": [{"type": "text", "text": json.dumps(result, ensure_ascii=False, indent=2)}],
        "structuredContent": result,
        "isError": False,
    }


def short(location: str):  # type: ignore[no-untyped-def]  # as the seed writes it
    """Get the weather by the two patterns of the seed's error handling."""
    try:
        for raised in INFRASTRUCTURE:
            if str(raised) == location:
                raise raised
        result = get_weather(location)
        if "error" in result:
            return {"content": [{"type": "text", "text": result["error"]}], "isError": True}
        return result
    except Exception as e:  # noqa: BLE001 -- as the seed writes it
        return {"content": [{"type": "text", "text": f"Error: {e!s}"}], "isError": True}


@pytest.fixture(scope="module")
def server() -> Iterator[BlockingServer]:
    app = App("workshop", contract="direct")
    app.add_tool(weather)
    app.add_tool(short)
    with connect(app) as connected:
        yield connected


@pytest.fixture(scope="module")
def url(serve: Callable[..., Any]) -> Iterator[str]:
    with serve(EXAMPLE) as served:
        yield served.url


def test_seed_003_the_success_of_the_servers_code_is_the_agents_data(
    server: BlockingServer,
) -> None:
    reply = server.call("weather", location="Oslo")

    assert reply.data == OSLO_003
    assert json.loads(reply.for_model()) == json.loads(read_by_the_seeds_agent(weather("Oslo")))
    assert reply.raw.items() >= SUCCESS_003.items()


@pytest.mark.parametrize("problem", BUSINESS)
@pytest.mark.parametrize("tool", [weather, short])
def test_seed_003_a_business_error_of_the_servers_code_is_a_failure(
    server: BlockingServer, tool: Any, problem: str
) -> None:
    reply = server.call(tool.__name__, location=problem)

    assert reply.error is not None
    assert problem in reply.error.message
    # The seed writes such an error in three ways; the contract sends the third.
    assert problem in read_by_the_seeds_agent(tool(problem))
    assert reply.for_model() == f"Error: {problem}"


@pytest.mark.parametrize("raised", INFRASTRUCTURE)
def test_seed_003_an_infrastructure_error_of_the_servers_code_is_a_failure(
    server: BlockingServer, raised: Exception
) -> None:
    reply = server.call("short", location=str(raised))

    assert reply.error is not None
    assert reply.for_model() == f"Error: {raised}"
    assert not reply.has_data


def test_seed_003_business_errors_have_classes_of_their_own() -> None:
    app = App("weather", contract="direct")

    @app.tool
    def forecast(key: str) -> str:
        if key == "wrong":
            raise Unauthenticated("Invalid API key")
        raise RateLimited("Rate limit exceeded")

    with connect(app) as connected:
        wrong, limited = (connected.call("forecast", key=key) for key in ("wrong", "right"))

    assert wrong.for_model() == "Error: Invalid API key"
    assert limited.for_model().startswith("Error: Rate limit exceeded")
    assert wrong.error is not None
    assert limited.error is not None
    assert (wrong.error.code, limited.error.code) == ("UNAUTHENTICATED", "RATE_LIMITED")


def test_seed_003_both_curls_are_calls_over_plain_rest(url: str) -> None:
    with connect(url, transport="rest") as connected:
        oslo = connected.call("weather", location="Oslo")
        nowhere = connected.call("weather", location="NonexistentCity12345")

    assert oslo.data == OSLO_003
    assert nowhere.error is not None
    assert nowhere.error.code == "LOCATION_NOT_FOUND"
    assert "Location not found: NonexistentCity12345" in nowhere.for_model()


def test_seed_003_the_bodies_of_both_curls_are_read_as_the_seeds_agent_reads_them(
    ask: Callable[..., Any], url: str
) -> None:
    for city, expected in (("Oslo", SUCCESS_003), ("NonexistentCity12345", ERROR_003)):
        body = ask(f"{url}/weather", json.dumps({"location": city}).encode()).body

        first_line = read(body).for_model().partition("\nHint: ")[0]

        assert _parsed(first_line) == _parsed(read_by_the_seeds_agent(expected))


def test_seed_003_a_server_that_is_gone_is_a_failed_reply(serve: Callable[..., Any]) -> None:
    with serve(EXAMPLE) as served:
        connecting = connect(served.url, transport="rest")
        connected = connecting.__enter__()

    reply = connected.call("weather", location="Oslo")
    connecting.__exit__(None, None, None)

    assert reply.error is not None
    assert reply.error.code == "UNAVAILABLE"


def test_seed_003_the_discovered_tools_are_functions_and_their_results_are_messages(
    server: BlockingServer,
) -> None:
    kit = to_openai(server.tools())
    call = {"name": "weather", "arguments": '{"location": "Oslo"}'}

    arguments = kit.arguments(call["name"], call["arguments"])
    reply = server.call(kit.name_of(call["name"]), arguments)
    [message] = kit.messages([("call_1", reply)])

    assert [each["function"]["name"] for each in kit.tools] == ["weather", "short"]
    assert kit.tools[0]["function"]["parameters"]["required"] == ["location"]
    assert json.loads(message.pop("content")) == OSLO_003
    assert message == {"role": "tool", "tool_call_id": "call_1"}


def test_seed_003_alternative_1_a_string_is_sent_as_a_result() -> None:
    app = App("weather", contract="direct")

    @app.tool
    def temperature() -> str:
        return "Temperature in Oslo: 5°C"

    with connect(app) as connected:
        reply = connected.call("temperature")

    assert reply.raw["content"][0]["type"] == "text"
    assert reply.raw["isError"] is False
    assert reply.data == "Temperature in Oslo: 5°C"
    assert reply.for_model() == "Temperature in Oslo: 5°C"


def test_seed_003_alternative_3_clients_before_structured_content_get_the_text_alone(
    url: str,
) -> None:
    with connect(f"{url}/mcp", version="2025-03-26") as connected:
        reply = connected.call("weather", location="Oslo")

    assert [type(block) for block in reply.content] == [Text]
    assert "structuredContent" not in reply.raw
    assert (reply.data, reply.data_from) == (OSLO_003, "text")


def _parsed(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text
