"""A call in the console: its replies over every wire, what models see of them, and its pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving
from tests.console.calling_page import CallingPage, output_of
from tests.widgets.browser_driver import Browser, chromium

REPLYING = Path(__file__).with_name("replying.py")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(REPLYING) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[CallingPage]:
    shown = CallingPage(browser, f"{server.url}/docs")
    yield shown
    assert browser.errors() == []


def test_one_call_shows_the_replies_of_every_wire_side_by_side(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="oslo")

    assert page.text(".verdict") == "All 3 wires send the same data."
    assert page.texts(".wire h3") == ["REST", "MCP 2025-11-25", "MCP 2026-07-28"]
    assert page.texts(".wire .status") == ["200", "200", "200"]
    assert all(each.endswith(" ms") for each in page.texts(".wire .time"))
    assert all('"population": 717710' in each for each in page.texts(".wire .json"))


def test_the_whole_reply_and_the_request_are_one_tab_away(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="oslo")

    page.tab("Whole reply")
    rest, stateful, stateless = page.texts(".wire .json")
    assert '"content-type": "application/json"' in rest
    assert '"structuredContent"' in stateful
    assert '"resultType": "complete"' in stateless
    page.tab("Request")
    assert '"method": "tools/call"' in page.texts(".wire .json")[2]


def test_a_wire_that_is_not_chosen_is_not_called(page: CallingPage) -> None:
    page.choose("city")
    page.browser.click(".pill:has-text('REST') input")
    page.call(name="oslo")

    assert page.texts(".wire h3") == ["MCP 2025-11-25", "MCP 2026-07-28"]


def test_a_tool_that_may_change_something_runs_once_unless_every_wire_is_chosen(
    page: CallingPage,
) -> None:
    page.choose("Visit a city")
    page.call(name="Bergen")

    assert page.texts(".wire h3") == ["MCP 2025-11-25"]
    assert '"Bergen": 1' in page.text(".wire .json")
    assert "runs only once" in page.text(".wire-hint")

    page.browser.click(".pill:has-text('Every wire') input")
    assert page.text(".wire-hint") == "The tool runs 3 times, once for each wire."
    page.button("Call")
    page.until("different data")
    assert '"Bergen": 4' in page.texts(".wire .json")[2]


def test_a_failure_is_shown_with_its_message_and_code_over_each_wire(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="Atlantis")

    assert page.text(".verdict") == "The call failed over all 3 wires."
    assert page.texts(".wire .status") == ["404", "200", "200"]
    assert all("There is no city Atlantis" in each for each in page.texts(".wire .problem"))
    assert '"code": "NOT_FOUND"' in page.texts(".wire .json")[1]


def test_each_host_and_framework_shows_its_part_with_its_tokens(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="oslo")

    rows = page.texts(".models tbody tr:not(.model-group)")
    assert len(rows) == 15
    codex = next(row for row in rows if row.startswith("Codex"))
    assert codex.split("\t")[1:] == ["data", "≈ 24", "nothing"]
    page.button("google-genai 3.1.0")
    assert page.text(".seen h3") == "google-genai 3.1.0"
    assert page.text(".seen .json").startswith('{"result":{"content":[')


def test_a_host_that_does_not_say_that_the_call_failed_is_named(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="Atlantis")

    rows = page.texts(".models tbody tr:not(.model-group)")
    assert "that it failed" in next(row for row in rows if row.startswith("Codex"))
    assert "leave something out" in page.text(".models > p")


def test_the_reply_is_shown_as_each_dialect_writes_it(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="Atlantis")

    page.tab("Dialects")
    page.tab("problem")
    assert '"title": "Not Found"' in page.text(".dialects .json")
    assert "application/problem+json" in page.text(".facts")
    page.tab("envelope")
    assert '"success": false' in page.text(".dialects .json")


def test_a_finding_is_shown_with_the_page_of_its_rule(page: CallingPage) -> None:
    page.choose("ferry")
    page.call()

    page.tab("Rules (1)")
    assert page.text(".finding strong").startswith("AB2")
    page.browser.click(".finding summary")
    assert "not like this:" in page.text(".finding details pre")


def test_a_reply_without_a_finding_says_so(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="oslo")

    page.tab("Rules")
    assert page.text(".rules").startswith("The reply breaks none of the ")


def test_the_code_to_copy_makes_the_same_call(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="Tromsø")

    page.tab("Code")
    _, python, shell = page.texts(".samples pre")
    assert "78745" in output_of(sys.executable, "-c", python)
    assert "78745" in output_of("sh", "-c", shell)


def test_a_browser_that_forbids_copying_says_so(page: CallingPage) -> None:
    """Outside HTTPS and this machine, a browser has no clipboard for pages."""
    page.browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.choose("city")
    page.call(name="oslo")
    page.tab("Code")
    page.button("Copy curl")

    assert page.until("The browser blocked copying: select the text", ".samples")


def test_the_command_for_curl_quotes_its_arguments(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="L'Isle")

    page.tab("Code")
    assert page.texts(".samples pre")[0].endswith("""-d '{"name":"L'\\''Isle"}'""")


def test_a_list_that_was_cut_is_read_part_by_part_and_as_a_whole(page: CallingPage) -> None:
    page.choose("streets")
    page.call()

    assert "cut to fit its budget" in page.text(".verdict")
    page.until("of 60 items", ".pages")
    page.browser.click(".pages button:has-text('Items')")
    page.until("Street number 20 of Oslo", ".pages details[open]")
    page.button("The whole reply")
    page.until("Street number 59 of Oslo", ".pages details:last-child")


def test_the_pages_of_a_list_follow_each_other(page: CallingPage) -> None:
    page.choose("harbours")
    page.call()

    page.button("Next page")
    page.until("Page 2", ".pages")
    page.button("Next page")
    page.until("Page 3", ".pages")
    second, third = page.browser.run(
        "[...document.querySelectorAll('.pages details pre')].map((each) => each.textContent)"
    )
    assert "Harbour number 13 of" in second
    assert "Harbour number 13 of" not in third


def test_an_image_is_shown_over_each_wire(page: CallingPage) -> None:
    page.choose("flag")
    page.call()

    page.browser.until("[...document.images].every((image) => image.complete)")
    widths = page.browser.run("[...document.images].map((image) => image.naturalWidth)")
    assert widths == [60, 60, 60]


def test_an_earlier_call_is_opened_and_repeated_from_the_history(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="oslo")
    page.call(name="bergen")
    page.browser.until("document.querySelector('.wire .json').innerText.includes('Bergen')")

    page.tab("History")
    assert len(page.texts(".history tbody tr")) == 2
    page.browser.click(".history tbody tr:last-child button:text-is('Open')")
    assert '"name": "Oslo"' in page.text(".wire .json")
    page.tab("History")
    page.browser.click(".history tbody tr:last-child button:text-is('Repeat')")
    page.until("All 3 wires send the same data.")
    page.tab("History")
    assert len(page.texts(".history tbody tr")) == 3


def test_a_host_that_cuts_a_large_reply_says_what_is_left_of_it(page: CallingPage) -> None:
    page.choose("register")
    page.call()

    page.button("Claude Code 2.1.280")
    assert "the first 2 KB of 85,902 characters" in page.text(".seen .problem")
    assert "a part" in page.text(".models tr.open")


def test_a_long_reply_is_shown_up_to_a_limit(page: CallingPage) -> None:
    page.choose("register")
    page.call()

    assert page.text(".wire .json").endswith("more characters")


def test_nothing_is_wider_than_a_small_screen(page: CallingPage) -> None:
    page.browser.viewport(360, 740)
    page.choose("city")
    page.call(name="oslo")

    widths = []
    for tab in ("What a model sees", "Dialects", "Rules", "Code", "History"):
        page.tab(tab)
        widths.append(page.browser.run("document.documentElement.scrollWidth"))
    page.browser.viewport(1280, 800)
    assert widths == [360] * 5


def test_the_views_of_a_reply_are_reached_with_the_keyboard(page: CallingPage) -> None:
    page.choose("city")
    page.call(name="oslo")

    page.browser.run("document.querySelector('[data-tab=models]').focus()")
    page.browser.press("ArrowRight")
    assert page.text("[role=tab][data-tab=dialects][aria-selected=true]") == "Dialects"
    page.browser.press("Tab")
    page.browser.press("ArrowRight")
    page.until('"population": 717710', ".dialects .json")
    assert page.text(".dialects [aria-selected=true]") == "rest"
