"""The screens in the pictures of the docs: how to get there, and the texts that each claims."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT, Server, serving
from tests.docs.page_runner import TUTORIAL_STEPS, blocks, is_pasted, paste
from tests.widgets.browser_driver import Browser
from tests.widgets.two_hosts import WIDGETS

IMAGES = ROOT / "docs" / "guides" / "images"
SIZE = (1280, 800)
READABLE = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const { top, bottom, height } = range.getBoundingClientRect();
    if (height && bottom > 0 && top < innerHeight) texts.push(node.data);
  }
  const fields = [...document.querySelectorAll("input, textarea")].map((field) => field.value);
  return [...texts, ...fields].join("\\n");
})()"""
"""The texts that the window shows without scrolling."""


class Screen(NamedTuple):
    name: str
    steps: Callable[[Browser], None]
    texts: list[str]
    app: str = "cities"
    """Which of the apps is shown; for `widgets` the texts may be in the widget's frame."""

    def show(self, browser: Browser, url: str) -> str:
        """Open the console and take the steps; return the texts in the window."""
        browser.open("about:blank")
        browser.viewport(*SIZE)
        browser.open(f"{url}/")
        browser.until("document.querySelector('.list li')")
        self.steps(browser)
        # The focus ring and the caret are not part of a picture.
        browser.run("document.activeElement.blur()")
        inside = browser.run(READABLE, "widget") if self.app == "widgets" else ""
        return f"{browser.run(READABLE)}\n{inside}"


def call_city(browser: Browser) -> None:
    browser.click(".list button:has(strong:text-is('city'))")
    browser.fill("form [data-path=name]", "Oslo")
    browser.click("role=button[name='Call']")
    browser.until("document.querySelector('.models')")


def models(browser: Browser) -> None:
    call_city(browser)
    browser.run("document.querySelector('.reply').scrollIntoView()")


def start(browser: Browser) -> None:
    call_city(browser)
    browser.click("header [data-tab=start]")
    browser.click("[role=tab][data-tab=Cursor]")


def find_notes(browser: Browser) -> None:
    browser.click(".list button:has(strong:text-is('find'))")
    browser.fill("form [data-path=word]", "bottles")
    browser.click("role=button[name='Call']")
    browser.until("document.querySelector('.models')")


def publish_diary(browser: Browser) -> None:
    browser.click(".list button:has(strong:text-is('publish'))")
    browser.click("label:has-text('Run as a task')")
    browser.click("role=button[name='Call']")
    browser.until("document.querySelector('.progress')?.innerText.includes('Day')")


def widget(browser: Browser) -> None:
    browser.click(".list button:has(strong:text-is('accounts'))")
    browser.click("role=button[name='Call']")
    browser.until("document.querySelectorAll('tr').length", "widget")
    browser.click("text=Savings", "widget")
    browser.until("document.querySelector('li')", "widget")
    # The frame grows when the widget says how tall it is.
    browser.until("document.documentElement.scrollHeight <= innerHeight", "widget")
    browser.run("document.querySelector('.reply').scrollIntoView()")


SCREENS = [
    Screen(
        "console-call",
        call_city,
        [
            "Cities of the North",
            "Find a city and its population.",
            "Oslo",
            "All 3 wires send the same data.",
            "REST",
            "MCP 2025-11-25",
            "MCP 2026-07-28",
            "717710",
        ],
    ),
    Screen(
        "console-models",
        models,
        ["What a model sees", "Dialects", "Rules", "Code", "Claude Code", "tokens"],
    ),
    Screen(
        "console-start",
        start,
        [
            "Try it in a terminal",
            "python cities.py list",
            "python cities.py call city name=Oslo",
            "Add it to a program with a model",
            "Claude Desktop",
            "VS Code",
            "ChatGPT",
            "python cities.py install cursor",
            '"mcpServers"',
        ],
    ),
    Screen(
        "console-widget",
        widget,
        ["Widget", "Checking", "€18,400.50", "Savings: salary 2100.00"],
        app="widgets",
    ),
    Screen(
        "console-notes",
        find_notes,
        [
            "Find notes.",
            "bottles",
            "All 3 wires send the same data.",
            "Buy two bottles",
            "Delete a note.",
        ],
        app="notes",
    ),
    Screen(
        "console-task",
        publish_diary,
        ["publish", "of 201: sending 'Day"],
        app="diary",
    ),
]


@contextmanager
def apps() -> Iterator[dict[str, str]]:
    """Serve the apps of the pictures; their addresses, by name."""
    with ExitStack() as stack:
        servers = {
            "cities": stack.enter_context(cities()),
            "widgets": stack.enter_context(serving(WIDGETS)),
            "notes": stack.enter_context(tutorial_before("serving")),
            "diary": stack.enter_context(tutorial_before("api-keys")),
        }
        yield {name: server.url for name, server in servers.items()}


@contextmanager
def cities() -> Iterator[Server]:
    """Serve the app of most pictures from a folder whose path says nothing about this machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cities"
        folder.mkdir()
        shutil.copy(Path(__file__).with_name("replying.py"), folder / "cities.py")
        with _serving(folder, "cities.py") as server:
            yield server


@contextmanager
def tutorial_before(step: str) -> Iterator[Server]:
    """Serve the tutorial's notes.py as it is before one of the steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for page in takewhile(lambda page: page.stem != step, TUTORIAL_STEPS):
            for block in filter(is_pasted, blocks(page)):
                paste(block, folder)
        note = {"title": "Milk", "text": "Buy two bottles", "tags": ["shop"]}
        commands = [["notes.py", "call", "create", f"note={json.dumps(note)}"], ["diary.py"]]
        for command in commands:
            if (folder / command[0]).exists():
                run = [sys.executable, *command]
                subprocess.run(run, cwd=folder, check=True, capture_output=True, timeout=60)
        with _serving(folder, "notes.py") as server:
            yield server


@contextmanager
def _serving(folder: Path, file: str) -> Iterator[Server]:
    environment = folder / ".venv"
    environment.unlink(missing_ok=True)
    environment.symlink_to(sys.prefix)
    python = str(environment / "bin" / "python")
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": ""}
    process = subprocess.Popen(
        [python, file, "serve", "--port", "0"],
        cwd=folder,
        stderr=subprocess.PIPE,
        env={**os.environ, **home},
    )
    try:
        yield Server(process)
    finally:
        # Not terminated: it would wait for the task in the picture.
        process.kill()
        process.communicate(timeout=60)
