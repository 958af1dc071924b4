"""Tools from a schema and tools that take all arguments reply alike on every wire."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.apps.schema_tools import FORECAST, TEMPERATURES, app
from tests.conftest import serving
from tests.forked import run as run_forked
from tests.protocol.recording_client import over_http, over_stdio

TARGET = Path(__file__).parent.parent / "apps" / "schema_tools.py"


class Wire(Protocol):
    """Calls a tool, and returns its result, or the code and the paths of its problems."""

    def __call__(self, tool: str, arguments: dict[str, Any]) -> Any: ...


def _error(code: str, message: str) -> Any:
    problems = message.removeprefix("Invalid arguments: ").split("\n")
    return code, [each.partition(":")[0] for each in problems]


def _over_cgi(tool: str, arguments: dict[str, Any]) -> Any:
    body = json.dumps(arguments).encode()
    request = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/functions/{tool}",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
    }
    done = run_forked([str(TARGET), "cgi"], input=body, env={**os.environ, **request})
    head, _, content = done.stdout.decode().partition("\r\n\r\n")
    answer = json.loads(content)
    code = re.search(r"X-Error-Code: (\w+)", head)
    return answer["result"] if code is None else _error(code[1], answer["error"])


def _on_the_command_line(tool: str, arguments: dict[str, Any]) -> Any:
    words = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in arguments.items()
    ]
    done = run_forked([str(TARGET), "call", tool, *words])
    if done.returncode == 0:
        return json.loads(done.stdout)["result"]
    answer = json.loads(done.stderr.splitlines()[-1])
    return _error(answer["code"], answer["error"])


def _over_rest(url: str) -> Wire:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        body = json.dumps(arguments).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/functions/{tool}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return json.load(response)["result"]
        except urllib.error.HTTPError as error:
            with error:
                return _error(error.headers["X-Error-Code"], json.load(error)["error"])

    return call


def _over_mcp(client: Any) -> Wire:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        result = client.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        if not result["isError"]:
            return result["structuredContent"]["result"]
        error = result["_meta"]["answerback/error"]
        text = result["content"][0]["text"].partition("Invalid arguments: ")[2]
        return _error(error["code"], text)

    return call


@pytest.fixture(scope="module", params=["rest", "stdio", "http", "cgi", "call"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    match request.param:
        case "cgi":
            yield _over_cgi
        case "call":
            yield _on_the_command_line
        case "stdio":
            with over_stdio(TARGET, "2025-11-25") as client:
                assert "result" in client.open()
                yield _over_mcp(client)
        case "rest":
            with serving(TARGET) as server:
                yield _over_rest(server.url)
        case "http":
            with serving(TARGET) as server, over_http(server.url, "2025-11-25") as client:
                assert "result" in client.open()
                yield _over_mcp(client)


@pytest.mark.parametrize(
    ("tool", "sent", "received"),
    [
        ("forecast", {"city": "Oslo"}, {"city": "Oslo"}),
        (
            "forecast",
            {"city": "Oslo", "days": "2", "hours": [6, 9], "at": {"x": 1.5}},
            {"city": "Oslo", "days": 2, "hours": [6, 9], "at": {"x": 1.5}},
        ),
        ("order", {"name": "tea", "count": "2"}, {"name": "tea", "count": 2}),
        ("unpacked", {"name": "tea"}, {"name": "tea"}),
        ("anything", {"a": [1], "b": "text"}, {"a": [1], "b": "text"}),
    ],
)
def test_the_function_receives_the_arguments(
    wire: Wire, tool: str, sent: dict[str, Any], received: dict[str, Any]
) -> None:
    assert wire(tool, sent) == repr(received)


@pytest.mark.parametrize(
    ("tool", "sent", "paths"),
    [
        ("forecast", {"city": "O", "days": 0, "zip": 1}, ["city", "days", "zip"]),
        ("forecast", {"days": "many", "at": {}}, ["at.x", "city", "days"]),
        ("order", {"nam": "tea", "count": "two"}, ["count", "nam", "name"]),
        ("unpacked", {"count": "two"}, ["count", "name"]),
    ],
)
def test_all_problems_are_listed_at_once(
    wire: Wire, tool: str, sent: dict[str, Any], paths: list[str]
) -> None:
    code, found = wire(tool, sent)

    assert code == "INVALID_ARGUMENTS"
    assert sorted(found) == paths


def test_a_result_that_does_not_fit_the_schema_is_not_sent(wire: Wire) -> None:
    code, _ = wire("forecast", {"city": "broken"})

    assert code == "INVALID_OUTPUT"


def test_the_schemas_are_listed_as_the_author_wrote_them() -> None:
    with over_stdio(TARGET, "2025-11-25") as client:
        client.open()
        listed = client.request("tools/list", {})["result"]["tools"][0]

    assert listed["inputSchema"] == FORECAST
    assert listed["outputSchema"] == TEMPERATURES


def test_the_help_of_the_command_line_comes_from_the_schema() -> None:
    done = run_forked([str(TARGET), "call", "forecast", "--help"])
    free = run_forked([str(TARGET), "call", "anything", "--help"])

    shown = done.stdout.decode()
    assert "forecast city=TEXT [days=INTEGER] [hours=LIST-OF-INTEGER] [at=OBJECT]" in shown
    assert "  city   text, required      The city.\n" in shown
    assert "  days   integer, default 3\n" in shown
    assert "anything [NAME=VALUE ...]\n" in free.stdout.decode()
    assert "It takes any arguments." in free.stdout.decode()


def test_the_openapi_document_has_the_schemas() -> None:
    document = json.loads(run_forked([str(TARGET), "openapi"]).stdout)

    def body(tool: str) -> Any:
        return document["paths"][f"/functions/{tool}"]["post"]["requestBody"]

    place = "#/components/schemas/forecast_arguments/$defs/Place"
    assert body("forecast")["required"] is True
    assert body("forecast")["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/forecast_arguments"
    }
    component = document["components"]["schemas"]["forecast_arguments"]
    assert component["properties"]["at"] == {"$ref": place}
    assert component["$defs"] == FORECAST["$defs"]
    assert body("order")["content"]["application/json"]["schema"] == (
        app.tools["order"].input_schema
    )
    assert body("anything")["required"] is False
