"""The console as a person uses it: choose, type, press, read."""

from __future__ import annotations

import json
from typing import Any

from tests.widgets.browser_driver import Browser


class Person:
    """Somebody at a freshly opened console."""

    def __init__(self, browser: Browser, url: str, shows: str = ".list li") -> None:
        self.browser = browser
        browser.open("about:blank")
        browser.open(f"{url}/docs")
        browser.until(f"document.querySelector({shows!r})")

    def view(self, name: str) -> None:
        self.browser.click(f"header >> role=tab[name={json.dumps(name)}]")

    def choose(self, entry: str) -> None:
        self.browser.click(f".list button:has(strong:text-is({json.dumps(entry)}))")
        self.reads(entry, ".detail h2")

    def press(self, button: str, within: str = "body") -> None:
        self.browser.click(
            f"{within} >> role=button[name={json.dumps(button, ensure_ascii=False)}]"
        )

    def fill(self, label: str, text: str) -> None:
        self.browser.fill(f"role=textbox[name=/^{label}/]", text)

    def pick(self, label: str) -> None:
        """Choose a radio button or a checkbox by its label."""
        self.browser.click(f"label:has-text({json.dumps(label)})")

    def reads(self, text: str, selector: str = "main") -> Any:
        """Wait until *text* is shown."""
        shown = f"document.querySelector({selector!r})?.innerText"
        try:
            return self.browser.until(f"{shown}?.includes({text!r}) && {shown}")
        except AssertionError as error:
            page = self.browser.run("document.body.innerText")
            raise AssertionError(f"{error}\nThe page shows:\n{page}") from None

    def sees(self, selector: str) -> Any:
        """Wait until *selector* is on the page."""
        return self.browser.until(f"document.querySelector({selector!r}) !== null")

    def no_longer_sees(self, selector: str) -> Any:
        return self.browser.until(f"document.querySelector({selector!r}) === null")
