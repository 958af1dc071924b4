"""The agents for Anthropic and Gemini answer end to end, against stand-ins of the APIs.

A stand-in refuses a request that the real API refuses: results that do not follow their calls.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.scripted_model import scripted_model

from answerback import App, Image, NotFound, Text, connect

EXAMPLES = Path(__file__).parent.parent / "examples"
Json = dict[str, Any]
Call = tuple[str, Any]

app = App("weather")


@app.tool(name="met.weather")
def weather(location: str) -> Json:
    """The weather at a location."""
    if location == "Atlantis":
        raise NotFound("no station in Atlantis", hint="try Oslo")
    return {"location": location, "degrees": 5}


@app.tool
def radar() -> list[Text | Image]:
    """A picture of the rain."""
    return [Text("The rain:"), Image(b"png", "image/png")]


class Api(NamedTuple):
    """A provider's API: the answers of its model, and the results that it was sent."""

    example: str
    variable: str
    path: str
    key_header: str
    calls: Callable[[list[Call]], Json]
    says: Callable[[str], Json]
    results: Callable[[Json], list[Json]]


def _anthropic_calls(calls: list[Call]) -> Json:
    blocks = [
        {"type": "tool_use", "id": f"t{n}", "name": name, "input": given}
        for n, (name, given) in enumerate(calls)
    ]
    return {"content": [{"type": "text", "text": "Let me look."}, *blocks]}


def _anthropic_results(request: Json) -> list[Json]:
    """The results in the last message; each answers a call of the message before, in order."""
    assert request["max_tokens"] > 0
    assert [each["role"] for each in request["messages"]][::2] == ["user"] * 2
    *_, asked, last = request["messages"]
    calls = [each["id"] for each in asked["content"] if each["type"] == "tool_use"]
    assert [each["tool_use_id"] for each in last["content"]] == calls
    assert {each["type"] for each in last["content"]} == {"tool_result"}
    return list(last["content"])


def _gemini_calls(calls: list[Call]) -> Json:
    parts: list[Json] = [{"functionCall": {"name": name, "args": given}} for name, given in calls]
    parts[0]["thoughtSignature"] = "c2lnbmVk"
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


def _gemini_results(request: Json) -> list[Json]:
    [tool] = request["tools"]
    assert {"name", "description", "parametersJsonSchema"} >= tool["functionDeclarations"][0].keys()
    *_, asked, last = request["contents"]
    assert asked["parts"][0]["thoughtSignature"] == "c2lnbmVk"
    responses = [each["functionResponse"] for each in last["parts"]]
    calls = [each["functionCall"]["name"] for each in asked["parts"]]
    assert [each["name"] for each in responses] == calls
    return responses


ANTHROPIC = Api(
    "agent_anthropic",
    "ANTHROPIC_BASE_URL",
    "/v1/messages",
    "x-api-key",
    _anthropic_calls,
    lambda text: {"content": [{"type": "text", "text": text}]},
    _anthropic_results,
)
GEMINI = Api(
    "agent_gemini",
    "GEMINI_BASE_URL",
    "/v1beta/models/gemini-3-pro-preview:generateContent",
    "x-goog-api-key",
    _gemini_calls,
    lambda text: {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]},
    _gemini_results,
)
each_api = pytest.mark.parametrize("api", [ANTHROPIC, GEMINI], ids=lambda api: api.example)


def stand_in(api: Api, answers: list[Json]) -> AbstractContextManager[tuple[str, list[Json]]]:
    """Serve an API whose model gives *answers* in turn; yields its URL and the requests."""
    return scripted_model(
        answers, lambda path, headers: path == api.path and bool(headers[api.key_header])
    )


def agent_of(api: Api) -> Any:
    spec = importlib.util.spec_from_file_location(api.example, EXAMPLES / f"{api.example}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results_of(api: Api, calls: list[Call], monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """The results that the model gets for its calls, as the API takes them."""
    with stand_in(api, [api.calls(calls), api.says("Done.")]) as (url, requests):
        monkeypatch.setenv(api.variable, url)
        with connect(app) as server:
            assert agent_of(api).answer(server, "Is it cold?") == "Done."
    return api.results(requests[1])


@each_api
def test_the_agent_answers_with_what_the_tool_says(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "met.weather" if api is GEMINI else "met_weather"

    [found] = results_of(api, [(name, {"location": "Oslo"})], monkeypatch)

    assert re.search(r"degrees\W+5", json.dumps(found))
    assert "is_error" not in found


@each_api
def test_every_call_of_a_turn_gets_its_result_also_those_that_the_model_got_wrong(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "met.weather" if api is GEMINI else "met_weather"
    calls = [("wether", {}), (name, {"location": "Atlantis"}), (name, {"town": "Oslo"})]

    found = results_of(api, calls, monkeypatch)

    texts = [json.dumps(each) for each in found]
    said = ["Unknown tool: wether", "no station in Atlantis", "location: missing"]
    assert [text for text, part in zip(texts, said, strict=True) if part not in text] == []
    assert all("is_error" in each or "error" in each["response"] for each in found)


@each_api
def test_an_image_reaches_the_model_beside_its_text(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    [found] = results_of(api, [("radar", {})], monkeypatch)

    assert "The rain:" in json.dumps(found)
    assert '"data": "cG5n"' in json.dumps(found)


@each_api
def test_a_model_that_never_stops_is_stopped(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in(api, [api.calls([("radar", {})])] * 10) as (url, requests):
        monkeypatch.setenv(api.variable, url)
        with connect(app) as server:
            assert agent_of(api).answer(server, "Go on.") == "No answer after 10 turns."

    assert len(requests) == 10


@each_api
def test_the_agent_is_a_command_that_says_in_a_line_why_it_cannot_begin(api: Api) -> None:
    program = str(EXAMPLES / f"{api.example}.py")

    done = [
        subprocess.run(
            [sys.executable, program, *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        for arguments in ([], ["Hi", "no-such-program"])
    ]

    assert [each.returncode for each in done] == [1, 1]
    assert f"python examples/{api.example}.py" in done[0].stderr
    assert "agent: cannot start 'no-such-program'" in done[1].stderr
