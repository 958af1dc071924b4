"""The list of the tools: grouped by tag, and searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import serving
from tests.widgets.browser_driver import Browser

APP = Path(__file__).parents[1] / "apps" / "every_argument.py"
MARKED = """
from answerback import App

app = App("garden")

@app.tool(destructive=True)
def wipe() -> str:
    return "wiped"

@app.tool(read_only=True)
def look() -> str:
    return "green"

@app.tool(task="required")
async def dig() -> str:
    return "deep"

@app.tool
def rest() -> str:
    return "rested"

app.run()
"""
GROUPS = """Object.fromEntries([...document.querySelectorAll("nav section")].map((each) => [
  each.ariaLabel, [...each.querySelectorAll("strong")].map((name) => name.innerText)]))"""


@pytest.fixture(scope="module")
def shop(serve: Callable[..., Any]) -> Iterator[str]:
    with serve(APP) as server:
        yield server.url


@pytest.fixture
def page(browser: Browser, shop: str) -> Browser:
    browser.open("about:blank")
    browser.open(f"{shop}/")
    browser.until("document.querySelector('nav li') && true")
    return browser


def test_the_tools_are_grouped_by_their_tags(page: Browser) -> None:
    assert page.run(GROUPS) == {
        "orders": ["order"],
        "values": ["values", "groups"],
        "write": ["order"],
        "without a tag": ["hostile", "endless", "ping"],
    }
    assert "6 tools" in page.accessible("nav")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ORDER place", ["order"]),
        ("pong", ["ping"]),
        ("stock", ["groups"]),
        ("write", ["order"]),
        ("nothing like this", []),
    ],
)
def test_a_search_finds_names_descriptions_tags_and_arguments(
    page: Browser, words: str, found: list[str]
) -> None:
    page.fill("nav input", words)
    page.until(
        f"document.querySelector('nav [role=status]').innerText === '{len(found)} of 6 tools'"
    )
    assert {name for names in page.run(GROUPS).values() for name in names} == set(found)


def test_escape_ends_a_search(page: Browser) -> None:
    page.fill("nav input", "pong")
    page.until("document.querySelectorAll('nav li').length === 1")
    page.press("Escape")
    assert page.until("document.querySelectorAll('nav li').length === 7")


def test_the_list_says_what_a_tool_does_to_the_world(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "marked.py").write_text(MARKED)
    with serving(tmp_path / "marked.py") as server:
        browser.open("about:blank")
        browser.open(f"{server.url}/")
        browser.until("document.querySelector('nav li') && true")
        marks = browser.run("""Object.fromEntries([...document.querySelectorAll("nav li")].map(
          (each) => [each.querySelector("strong").innerText,
            [...each.querySelectorAll("small")].map((mark) => mark.innerText)]))""")

        assert marks == {
            "wipe": ["destructive"],
            "look": ["read-only"],
            "dig": ["task"],
            "rest": [],
        }


def test_a_misspelt_search_suggests_the_words_of_the_tools(page: Browser) -> None:
    page.fill("nav input", "ordr")
    page.until("document.querySelector('nav [role=status]').innerText === '0 of 6 tools'")
    page.click("nav >> role=button[name='order']")
    page.until("document.querySelector('nav [role=status]').innerText === '1 of 6 tools'")
    assert page.run("document.querySelector('nav input').value") == "order"


def test_enter_in_the_search_opens_the_first_tool_and_goes_to_its_form(page: Browser) -> None:
    page.fill("nav input", "place")
    page.until("document.querySelector('nav [role=status]').innerText === '1 of 6 tools'")
    page.press("Enter")
    assert page.until("document.activeElement.dataset.path") == "customer"


def test_the_search_stays_when_the_list_is_scrolled(page: Browser) -> None:
    page.viewport(1280, 300)
    try:
        page.run("document.querySelector('nav.list').scrollTo(0, 1000)")
        box = "document.querySelector('nav input').getBoundingClientRect()"
        assert page.run("document.querySelector('nav.list').scrollTop") > 0
        assert page.run(f"{box}.top") >= 0
    finally:
        page.viewport(1280, 800)
