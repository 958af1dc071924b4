"""Tools from a schema and tools that take all arguments reply alike on every wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.apps.schema_tools import FORECAST, TEMPERATURES, app
from tests.forked import run as run_forked
from tests.protocol.recording_client import over_stdio
from tests.wires import Failed, Wire, calls_over

TARGET = Path(__file__).parent.parent / "apps" / "schema_tools.py"


def _on_the_command_line(tool: str, arguments: dict[str, Any]) -> Any:
    words = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in arguments.items()
    ]
    done = run_forked([str(TARGET), "call", tool, *words])
    if done.returncode == 0:
        return json.loads(done.stdout)["result"]
    answer = json.loads(done.stderr.splitlines()[-1])
    return Failed(answer["code"], answer["error"])


@pytest.fixture(scope="module", params=["rest", "stdio", "http", "cgi", "call"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    if request.param == "call":
        yield _on_the_command_line
        return
    with calls_over(request.param, TARGET) as call:
        yield call


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
    code, message = wire(tool, sent)

    problems = message.partition("Invalid arguments: ")[2].split("\n")
    assert code == "INVALID_ARGUMENTS"
    assert sorted(each.partition(":")[0] for each in problems) == paths


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
