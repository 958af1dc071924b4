"""The first screen for newcomers: what it says to type does what it says."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import Server, serving
from tests.widgets.browser_driver import Browser

from .opened import opened, stdio_command

APP = Path(__file__).with_name("every_feature.py")
CODES = "[...document.querySelectorAll('main pre')].map((code) => [code.ariaLabel, code.innerText])"


@pytest.fixture(scope="module")
def harbour() -> Iterator[Server]:
    with serving(APP) as server:
        yield server


def start(browser: Browser, page: str) -> dict[str, str]:
    """Open the first screen; return what there is to copy, by the text above it."""
    browser.open("about:blank")
    browser.open(page)
    browser.until("document.querySelector('header [data-tab=start]')")
    browser.until("document.querySelector('.list li')")
    browser.click("header [data-tab=start]")
    browser.until("document.querySelector('.start')")
    return dict(browser.run(CODES))


def run(command: str, cwd: Path | None = None) -> str:
    """Run what a user pastes into a shell."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_three_commands_can_be_pasted_into_a_terminal(
    browser: Browser, harbour: Server
) -> None:
    commands = start(browser, f"{harbour.url}/")

    assert "berths" in run(commands["List what the server has"])
    over_shell = json.loads(run(commands["Call berths"]))
    over_http = json.loads(run(commands["Call it over HTTP"]))
    assert over_shell == over_http == {"result": ["north 1", "south 3"]}


@pytest.mark.parametrize(
    ("host", "title"),
    [
        ("claude", "Claude Desktop"),
        ("claude-code", "Claude Code"),
        ("cursor", "Cursor"),
        ("gemini-cli", "Gemini CLI"),
        ("vscode", "VS Code"),
    ],
)
def test_each_host_has_the_command_and_the_entry_of_install(
    browser: Browser, harbour: Server, host: str, title: str
) -> None:
    start(browser, f"{harbour.url}/")

    browser.click(f"[role=tab][data-tab='{title}']")
    shown = dict(browser.run(CODES))

    command = next(code for code in shown.values() if " install " in code)
    assert command == f"python {shlex.quote(str(APP))} install {host}"
    entry = next(code for label, code in shown.items() if label.startswith("Or add this to "))
    assert json.loads(entry) == json.loads(run(f"{command} --print"))


def test_chatgpt_is_told_that_it_needs_a_public_address(browser: Browser, harbour: Server) -> None:
    start(browser, f"{harbour.url}/")

    browser.click("[role=tab][data-tab=ChatGPT]")

    assert "cannot reach this machine" in browser.run("document.querySelector('.steps').innerText")


def test_a_foreign_server_has_commands_with_its_target(browser: Browser) -> None:
    with opened(stdio_command(APP)) as console:
        commands = start(browser, console.page)

        assert "berths" in run(commands["List what the server has"])
        assert json.loads(run(commands["Call berths"])) == {"result": ["north 1", "south 3"]}
        assert "berths" in run(commands["See its arguments"])
        assert commands["Run this."] == f"claude mcp add harbour -- {stdio_command(APP)}"


def test_users_of_other_machines_see_the_address_and_no_paths(browser: Browser) -> None:
    with serving(APP, "--allow-host", "tools.example.com", "--console") as server:
        about: dict[str, Any] = httpx.get(f"{server.url}/console/about.json").json()
        shown = start(browser, f"{server.url}/")

        assert about["start"] is None
        assert str(APP.parent) not in "".join(shown.values())
        assert shown["Run this."] == f"claude mcp add --transport http harbour {server.url}/mcp"
        assert json.loads(run(shown["Call berths"])) == {"result": ["north 1", "south 3"]}
