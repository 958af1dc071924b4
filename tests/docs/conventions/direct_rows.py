"""Checks of the rows about `direct`."""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypedDict

import pytest
from tests.docs.conventions.checks import (
    EXAMPLES,
    ROOT,
    app_of,
    ask_mcp,
    example,
    request,
    rows_of,
    sent,
    text_of,
)

from answerback import App, Embedded, Image, NotFound, connect, read, success
from answerback.contract import DIRECT
from answerback.models import to_openai

row = rows_of("direct")
OSLO = {"temperature": 5, "conditions": "Cloudy"}
SUCCESS = {
    "content": [{"type": "text", "text": json.dumps(OSLO)}],
    "structuredContent": OSLO,
    "isError": False,
}
ERROR = {"content": [{"type": "text", "text": "Error: Location not found"}], "isError": True}


class Measured(TypedDict):
    error: str


def direct(value: Any, dialect: Any = None) -> Any:
    """What an app under `direct` sends for a tool that returns or raises *value*."""

    def my_tool() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return sent(app_of(my_tool, contract="direct"), "my_tool", dialect)


def without_meta(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "_meta"}


@row("services/mcp-server/app.py")
def _() -> None:
    result = sent(example("weather.py"), "weather", location="Oslo")

    assert result["structuredContent"]["temperature"] == 5


@row("services/agent/app.py")
def _() -> None:
    text_only = {"content": [{"type": "text", "text": "Cloudy"}], "isError": False}

    assert json.loads(read(SUCCESS).for_model()) == OSLO
    assert "Location not found" in read(ERROR).for_model()
    assert read(text_only).for_model() == "Cloudy"
    assert "kit.messages(results" in (EXAMPLES / "agent.py").read_text()


@row("POST /weather")
def _() -> None:
    response = request(example("weather.py"), "POST", "/weather", {"location": "Oslo"})

    assert response.json().keys() >= {"content", "structuredContent", "isError"}


@row("json.dumps(result, ensure_ascii=False, indent=2)")
def _() -> None:
    result = {"location": "Tromsø", "temperature": -3}

    assert text_of(direct(result)) == json.dumps(result, ensure_ascii=False, indent=2)


@row('if "error" in result')
def _() -> None:
    raised = direct(NotFound("Location not found"))
    result = {"error": "Location not found"}
    by_hand = direct({"content": [{"type": "text", "text": json.dumps(result)}], "isError": True})

    assert without_meta(raised) == ERROR
    assert by_hand["isError"] is True
    assert "Location not found" in text_of(by_hand)


@row('return "Temperature in Oslo: 5°C" (alternative 1)')
def _() -> None:
    def temperature() -> str:
        return "Temperature in Oslo: 5°C"

    with connect(app_of(temperature, contract="direct")) as server:
        reply = server.call("temperature")

    assert reply.raw["isError"] is False
    assert reply.for_model() == "Temperature in Oslo: 5°C"


@row('{"role": "function", …} (alternative 2)')
def _() -> None:
    kit = to_openai(example("weather.py"), functions=True)

    message = kit.message(None, SUCCESS, name="weather")

    assert (message["role"], json.loads(message["content"])) == ("function", OSLO)


@row("001-dynamic-tool-discovery.md")
def _() -> None:
    with connect(example("weather.py")) as server:
        names = [tool.name for tool in server.tools()]

    assert names == ["weather", "cities"]


@row("doc/WORKSHOP.md")
def _() -> None:
    docs = ROOT / "docs"

    assert (docs / "start" / "tutorial.md").exists()
    assert (docs / "reference" / "mcp.md").exists()


@row("current state: plain HTTP")
def _() -> None:
    response = request(example("weather.py"), "POST", "/weather", {"location": "Oslo"})

    assert response.status_code == 200


@row("next step: a JSON-RPC 2.0 layer")
def _() -> None:
    arguments = {"location": "Oslo"}
    result = ask_mcp(example("weather.py"), "tools/call", name="weather", arguments=arguments)

    assert result["structuredContent"]["temperature"] == 5


@row("production: perhaps without structuredContent")
def _() -> None:
    with connect(example("weather.py"), version="2025-03-26") as server:
        raw = server.call("weather", location="Oslo").raw

    assert ("content" in raw, "structuredContent" in raw) == (True, False)


@row("it follows MCP 2025-11-25")
def _() -> None:
    app = example("weather.py")

    with connect(app, version="2025-06-18") as server:
        raw = server.call("weather", location="Oslo").raw

    assert {"structuredContent", "isError"} <= raw.keys()


@row("it is dated ten months before")
def _() -> None:
    with connect(example("weather.py"), version="2025-11-25") as server:
        assert server.call("weather", location="Oslo").ok


@row("an error's text is Error: …")
def _() -> None:
    assert text_of(direct(NotFound("Location not found"))) == "Error: Location not found"


@row("except Exception sends str(e)")
def _() -> None:
    assert "localhost" not in json.dumps(direct(RuntimeError("at localhost:5432")))


@row("a result with a key error is an error")
def _() -> None:
    def declared() -> Measured:
        return {"error": "0.5 °C"}

    assert direct({"error": "Location not found"})["isError"] is True
    assert direct({"error": ""})["isError"] is False
    assert direct({"error": "measured", "temperature": 5})["isError"] is True
    assert sent(app_of(declared, contract="direct"), "declared")["isError"] is False


@row("three required fields, but errors have two")
def _() -> None:
    assert direct(OSLO).keys() == {"content", "structuredContent", "isError"}
    assert without_meta(direct(NotFound("no"))).keys() == {"content", "isError"}
    assert direct(success("Done"), "mcp").keys() >= {"content", "isError"}


@row('text should be for people ("Temperature in Oslo: 5°C")')
def _() -> None:
    content = direct(success("5 °C in Tromsø", {"city": "Tromsø"}))["content"]

    indented = '{\n  "city": "Tromsø"\n}'
    assert [block["text"] for block in content] == ["5 °C in Tromsø", indented]


@row('the resource block is {"type": "resource", "uri": …}')
def _() -> None:
    content = direct([Embedded("file:///a", "text"), Image(b"x", "image/png")])["content"]

    resource, image = content[-2:]
    assert resource == {"type": "resource", "resource": {"uri": "file:///a", "text": "text"}}
    assert image["mimeType"] == "image/png"


@row("the route /weather is at the root")
def _() -> None:
    app = App("routes", contract="direct")

    with pytest.raises(ValueError, match="healthz"):

        @app.tool
        def healthz() -> str:
            return "fine"


@row("no HTTP status is given for an error")
def _() -> None:
    def missing() -> None:
        raise NotFound("Location not found")

    always_200 = DIRECT.derive(always_200=True)

    assert request(app_of(missing, contract="direct"), "POST", "/missing").status_code == 404
    assert request(app_of(missing, contract=always_200), "POST", "/missing").status_code == 200
    assert asyncio.run(app_of(missing).call("missing")).error is not None
