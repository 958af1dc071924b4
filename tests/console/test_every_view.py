"""Every view of the console: accessible, without errors, and without requests to others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving
from tests.widgets.browser_driver import Browser

APP = Path(__file__).with_name("every_feature.py")
VIEWS = "[...document.querySelectorAll('#app > header [role=tab]')].map((tab) => tab.dataset.tab)"
WIDE, NARROW = (1280, 800), (360, 640)


@pytest.fixture(scope="module")
def harbour() -> Iterator[Server]:
    with serving(APP) as server:
        yield server


@pytest.fixture
def page(browser: Browser, harbour: Server) -> Iterator[Browser]:
    browser.open("about:blank")
    browser.open(f"{harbour.url}/docs")
    browser.until("document.querySelector('header [role=tab]')")
    yield browser
    browser.scheme("light")
    browser.viewport(640, 480)


def show(page: Browser, view: str) -> None:
    page.click(f"header [data-tab={view}]")
    page.until(f"document.querySelector('header [data-tab={view}]').ariaSelected === 'true'")


def call_a_tool(page: Browser) -> None:
    show(page, "tools")
    page.click("nav >> role=button[name=/^ship/]")
    page.fill("form [data-path=name]", "Fram")
    page.click("role=button[name='Call']")
    page.until("document.querySelector('.models')")


def found_on_each_view(page: Browser) -> list[str]:
    """What axe-core finds serious, and which views are wider than the window."""
    found: list[str] = []
    for view in page.run(VIEWS):
        show(page, view)
        found += [f"{view}: {each}" for each in page.axe("serious", "critical")]
        if page.run("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{view} is wider than the window")
    return found


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_axe_finds_nothing_serious_and_every_view_fits_the_window(
    page: Browser, colours: str, size: tuple[int, int]
) -> None:
    page.viewport(*size)
    page.scheme(colours)

    before = found_on_each_view(page)
    call_a_tool(page)
    after = found_on_each_view(page)

    assert "\n".join([*before, *after]) == ""


def test_no_view_causes_an_error_or_asks_another_origin(page: Browser, harbour: Server) -> None:
    for view in page.run(VIEWS):
        show(page, view)
    call_a_tool(page)

    assert page.errors() == []
    assert page.logged() == []
    foreign = [url for url in page.requests() if not url.startswith(f"{harbour.url}/")]
    assert foreign == []


def test_the_policy_of_the_page_stops_injected_scripts_styles_and_requests(
    page: Browser,
) -> None:
    page.run(
        """(() => {
          const script = document.createElement("script");
          script.textContent = "window.injected = true";
          document.body.append(script);
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          document.head.append(style);
          fetch("https://example.com/").catch(() => { window.refused = true; });
        })()"""
    )

    page.until("window.refused")
    assert page.run("window.injected") is None
    assert page.run("getComputedStyle(document.body).display") == "block"
    blocked = "\n".join(page.logged())
    assert "script-src" in blocked
    assert "style-src" in blocked
    assert "connect-src" in blocked
