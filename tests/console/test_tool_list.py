"""The list of the tools: grouped by tag, and searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.widgets.browser_driver import Browser

APP = Path(__file__).parents[1] / "apps" / "every_argument.py"
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
