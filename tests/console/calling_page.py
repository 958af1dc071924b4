"""The console in Chromium, as a person uses it to call tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.widgets.browser_driver import Browser


class CallingPage:
    """The console, as a person uses it."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        browser.open("about:blank")
        browser.open(url)
        browser.until("document.querySelector('.list li')")

    def choose(self, tool: str) -> None:
        self.browser.click(f".list button:has(strong:text-is('{tool}'))")

    def call(self, **arguments: str) -> None:
        """Fill in the arguments, call, and wait for all that the page shows."""
        for name, value in arguments.items():
            self.browser.fill(f".fields :is(input, textarea)[id*='{name}']", value)
        self.browser.click("button.main")
        self.browser.until("document.querySelector('.models')")

    def tab(self, name: str) -> None:
        self.browser.click(f"[role=tab]:has-text('{name}')")

    def button(self, name: str) -> None:
        self.browser.click(f"button:text-is('{name}')")

    def text(self, selector: str) -> str:
        found = f"document.querySelector({selector!r})?.innerText"
        return str(self.browser.until(found))

    def texts(self, selector: str) -> list[str]:
        found = f"[...document.querySelectorAll({selector!r})].map((each) => each.innerText)"
        return list(self.browser.run(found))

    def until(self, text: str, selector: str = "main") -> Any:
        """Wait until *text* is shown."""
        return self.browser.until(
            f"document.querySelector({selector!r})?.innerText.includes({text!r})"
        )


def output_of(*command: str) -> str:
    """What a program prints that was copied from the console; it finds `answerback`."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "PYTHONIOENCODING": "utf-8"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
