"""Calls in the console of apps with other contracts, and of servers that are only targets."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import ROOT, serving
from tests.console.calling_page import CallingPage, output_of
from tests.console.opened import opened, stdio_command
from tests.widgets.browser_driver import Browser, chromium

REPLYING = Path(__file__).with_name("replying.py")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened_browser:
        yield opened_browser


@pytest.mark.parametrize(
    ("example", "tool", "arguments", "data"),
    [
        ("aligned", "functions.Add", {"x": "7", "y": "3"}, '"result": 10'),
        ("weather", "weather", {"location": "Oslo"}, '"conditions": "Cloudy"'),
        ("instances", "list_instances", {}, '"instances": ['),
    ],
)
def test_the_wires_of_each_contract_send_the_same_data(
    browser: Browser, example: str, tool: str, arguments: dict[str, str], data: str
) -> None:
    with serving(ROOT / "examples" / f"{example}.py") as server:
        page = CallingPage(browser, server.url)
        page.choose(tool)
        page.browser.run("document.querySelector('.pill:last-child input').click()")
        page.call(**arguments)

        assert page.text(".verdict") == "All 3 wires send the same data."
        assert all(data in each for each in page.texts(".wire .json"))


def test_a_server_over_stdio_shows_what_models_see_of_its_replies(browser: Browser) -> None:
    with opened(stdio_command(REPLYING)) as console:
        page = CallingPage(browser, console.page)
        page.until("MCP 2026-07-28", ".wire-choice")
        page.choose("city")
        page.call(name="Oslo")

        assert page.texts(".wire h3") == ["MCP 2025-11-25", "MCP 2026-07-28"]
        assert page.text(".verdict") == "All 2 wires send the same data."
        assert len(page.texts(".models tbody tr:not(.model-group)")) == 15
        page.tab("Code")
        python, shell = page.texts(".samples pre")
        assert "717710" in output_of(sys.executable, "-c", python)
        assert "717710" in output_of("sh", "-c", shell)


def test_the_code_for_a_server_of_a_file_names_the_file_and_the_server(
    browser: Browser, tmp_path: Path
) -> None:
    command, *words = shlex.split(stdio_command(REPLYING))
    servers = {"north": {"command": command, "args": words}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))

    with opened(file) as console:
        page = CallingPage(browser, console.page)
        page.choose("city")
        page.call(name="Oslo")

        page.tab("Code")
        python, shell = page.texts(".samples pre")
        assert "717710" in output_of(sys.executable, "-c", python)
        assert "717710" in output_of("sh", "-c", shell)


def test_views_of_a_target_need_the_start_token() -> None:
    body = {"result": {"content": []}, "tool": {"name": "city"}}
    with opened(stdio_command(REPLYING)) as console:
        allowed = console.http.post("/console/views", json=body)
        refused = console.http.post(
            "/console/views", json=body, headers={"X-Answerback-Console": "guess"}
        )
        malformed = console.http.post("/console/views", json={})

    assert allowed.status_code == 200
    assert len(allowed.json()["models"]) == 15
    assert refused.status_code in (401, 403)
    assert malformed.status_code == 400
