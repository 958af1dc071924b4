"""The Inspector's command line, 2.12.0, in both eras, over stdio and HTTP.

It declares no elicitation and shows no progress, so neither can be tested with it: a tool that
asks the user fails, as it must for a client without that capability.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
from tests.conftest import load_app
from tests.protocol.client_report import PIXEL, VERSION, Era
from tests.protocol.official_tools import FOR_CLIENTS, INSPECTOR, node_command, node_environment

ERAS = pytest.mark.parametrize("era", ["stateful", "stateless"])

PROTOCOL_ERA: dict[Era, str] = {"stateful": "legacy", "stateless": "modern"}
"""The Inspector's own names of the eras, for its flag."""


class Printed(NamedTuple):
    status: int
    out: Any
    err: str


Inspect: TypeAlias = Callable[..., Printed]


@pytest.fixture(params=["stdio", "http"])
def inspect(request: pytest.FixtureRequest, for_clients_url: str, tmp_path: Path) -> Inspect:
    stdio = [sys.executable, str(FOR_CLIENTS), "mcp"]
    target = stdio if request.param == "stdio" else [for_clients_url]

    def run(era: Era, method: str, *options: str) -> Printed:
        flags = [
            "--protocol-era",
            PROTOCOL_ERA[era],
            "--method",
            method,
            *options,
            "--format",
            "json",
            "-q",
        ]
        done = subprocess.run(
            node_command(INSPECTOR, "--cli", *target, *flags),
            env=node_environment(tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Printed(done.returncode, json.loads(done.stdout or "{}"), done.stderr)

    return run


@ERAS
def test_the_inspector_negotiates_the_version_of_its_era(inspect: Inspect, era: Era) -> None:
    printed = inspect(era, "initialize")

    assert printed.out["result"]["protocolVersion"] == VERSION[era]
    assert printed.out["result"]["serverInfo"]["name"] == "for-clients"


@ERAS
def test_the_inspector_lists_the_tools_and_finds_their_schemas_portable(
    inspect: Inspect, era: Era
) -> None:
    printed = inspect(era, "tools/list", "--strict")

    assert printed.status == 0, printed.err
    assert [tool["name"] for tool in printed.out["result"]["tools"]] == list(
        load_app(FOR_CLIENTS).tools
    )


@ERAS
def test_the_inspector_reads_text_and_structured_data(inspect: Inspect, era: Era) -> None:
    arguments = '{"x":2,"y":3}'
    printed = inspect(era, "tools/call", "--tool-name", "add", "--tool-args-json", arguments)

    assert printed.status == 0, printed.err
    result = printed.out["result"]
    assert result["structuredContent"] == {"total": 5, "terms": [2, 3]}
    assert result["content"] == [{"type": "text", "text": '{"total":5,"terms":[2,3]}'}]
    assert result["isError"] is False


def test_the_inspector_reads_an_image(inspect: Inspect) -> None:
    printed = inspect("stateless", "tools/call", "--tool-name", "picture")

    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    assert printed.out["result"]["content"] == [image]


def test_the_inspector_reports_an_error_by_its_exit_status(inspect: Inspect) -> None:
    printed = inspect(
        "stateless", "tools/call", "--tool-name", "fail", "--tool-arg", "city=Atlantis"
    )

    assert printed.status == 5
    assert printed.out["result"]["isError"] is True
    assert printed.out["result"]["content"][0]["text"] == "no city 'Atlantis'"
    assert "tool_is_error" in printed.err


def test_the_inspector_gets_an_error_for_a_tool_that_asks_the_user(inspect: Inspect) -> None:
    printed = inspect("stateless", "tools/call", "--tool-name", "greet")

    assert printed.status == 1
    assert "elicitation" in printed.err
