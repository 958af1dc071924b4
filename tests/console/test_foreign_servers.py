"""The console on servers of others: the official example, the official SDK, FastMCP."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from tests.protocol.official_tools import MODULES, node_command
from tests.widgets.browser_driver import Browser

from .opened import opened

EVERYTHING = MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
SDK = """
from mcp.server import MCPServer

server = MCPServer("sdk-server")

@server.tool()
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b

server.run()
"""
FASTMCP = """
from fastmcp import FastMCP

server = FastMCP("fast-server")

@server.tool
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b

server.run(show_banner=False)
"""
ODD = """
import json, sys

good = {"name": "good", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
bad = {"name": "bad", "inputSchema": {"type": "object"}, **json.loads(sys.argv[1])}
info = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "odd", "version": "1"}}
capabilities = {"tools": {}, "resources": {}, "prompts": {}}
answers = {
    "initialize": {**info, "capabilities": capabilities},
    "tools/list": {"tools": [good, bad, 7, None]},
    "tools/call": {"content": [{"type": "text", "text": "fine"}]},
    "resources/list": {"resources": [{"uri": 5, "name": "a"}, {"uri": "a:b", "name": {"a": 1}}]},
    "prompts/list": {"prompts": [{"name": "p", "description": 5, "arguments": 5}]},
}
for line in sys.stdin:
    message = json.loads(line)
    result = answers.get(message.get("method"), {})
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        print(json.dumps(answer), flush=True)
"""
VIEWS = "[...document.querySelectorAll('#app > header [role=tab]')].map((tab) => tab.dataset.tab)"


def python_server(source: str, folder: Path) -> str:
    path = folder / "server.py"
    path.write_text(source)
    return shlex.join([sys.executable, str(path)])


def call(browser: Browser, page: str, tool: str, **arguments: str) -> str:
    """Open the console, call a tool, and return the texts of the replies."""
    browser.open("about:blank")
    browser.viewport(1280, 800)
    browser.open(page)
    browser.until("document.querySelector('.list li')")
    browser.click(f".list button:has-text('{tool}')")
    for name, value in arguments.items():
        browser.fill(f"form [data-path={name}]", value)
    browser.click("role=button[name='Call']")
    browser.until("document.querySelector('.models')")
    return str(browser.run("document.querySelector('.wires').innerText"))


def check_every_view(browser: Browser, url: str) -> None:
    """No view has an error, a serious finding or a request to another origin."""
    for view in browser.run(VIEWS):
        browser.click(f"header [data-tab={view}]")
        browser.until(f"document.querySelector('header [data-tab={view}]').ariaSelected === 'true'")
        assert browser.axe("serious", "critical") == [], view
    assert browser.errors() == []
    assert browser.logged() == []
    assert [each for each in browser.requests() if not each.startswith(url)] == []


@pytest.mark.parametrize("source", [SDK, FASTMCP], ids=["sdk", "fastmcp"])
def test_a_server_in_python_is_called_from_the_page(
    browser: Browser, tmp_path: Path, source: str
) -> None:
    with opened(python_server(source, tmp_path)) as console:
        shown = call(browser, console.page, "add", a="7", b="3")

        assert "10" in shown
        check_every_view(browser, console.url)


def test_the_official_example_is_called_from_the_page(browser: Browser) -> None:
    with opened(shlex.join(node_command(EVERYTHING, "stdio"))) as console:
        shown = call(browser, console.page, "echo", message="ahoy")

        assert "Echo: ahoy" in shown
        check_every_view(browser, console.url)


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"description": 5}, "bad: its description is not a string."),
        ({"description": ["x"], "title": {"a": 1}}, "bad: its title is not a string."),
        ({"name": {"a": 1}}, "Entry 2 is left out: its name is not a string."),
        ({"name": None}, "Entry 2 is left out: its name is not a string."),
    ],
)
def test_a_wrong_type_in_one_tool_leaves_the_others_usable(
    browser: Browser, tmp_path: Path, odd: dict[str, object], said: str
) -> None:
    command = f"{python_server(ODD, tmp_path)} {shlex.quote(json.dumps(odd))}"
    with opened(command) as console:
        assert "fine" in call(browser, console.page, "good")

        faults = browser.run("document.querySelector('.list .odd').innerText").split("\n")
        assert faults[0] == said
        assert "Entry 3 is left out: its name is not a string." in faults
        if "name" not in odd:
            browser.click(".list button:has-text('bad')")
            browser.until("document.querySelector('.detail h2').innerText.trim() === 'bad'")
        check_every_view(browser, console.url)
