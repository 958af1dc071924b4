"""The pictures of the docs: each screen still shows what its picture claims."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from rich.text import Text
from tests.docs.page_runner import ROOT
from tests.widgets.browser_driver import Browser

from .screens import IMAGES, SCREENS, Screen, apps
from .terminals import TERMINALS, Terminal, output_of

COLOURS = ("light", "dark")


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, str]]:
    with apps() as urls:
        yield urls


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_a_screen_shows_the_texts_that_its_picture_claims(
    browser: Browser, served: dict[str, str], screen: Screen
) -> None:
    shown = screen.show(browser, served[screen.app])

    browser.viewport(640, 480)
    assert [text for text in screen.texts if text not in shown] == []


@pytest.mark.parametrize("terminal", TERMINALS, ids=lambda terminal: terminal.name)
def test_a_terminal_shows_the_texts_that_its_picture_claims(terminal: Terminal) -> None:
    written = Text.from_ansi(output_of(terminal)).plain
    drawn = (IMAGES / f"{terminal.name}-light.svg").read_text().replace("&#160;", " ")

    assert [text for text in terminal.texts if text not in written] == []
    assert [text for text in terminal.texts if text not in drawn] == []
    assert "@font-face" not in drawn, "the picture would load a font from another site"


def test_each_picture_is_in_a_page_in_light_and_dark() -> None:
    names = [f"{screen.name}-{each}.png" for screen in SCREENS for each in COLOURS]
    names += [f"{terminal.name}-{each}.svg" for terminal in TERMINALS for each in COLOURS]
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))

    assert [name for name in names if not (IMAGES / name).is_file()] == []
    assert [name for name in names if f"images/{name}" not in pages] == []
    readme = re.findall(r"docs/guides/images/[\w.-]+", (ROOT / "README.md").read_text())
    assert readme == [f"docs/guides/images/console-call-{each}.png" for each in ("dark", "light")]
