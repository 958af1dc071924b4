"""Widgets in the console: in a frame of their own, with the policy that they declare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.conftest import Server, serving
from tests.widgets.browser_driver import Browser, Loopback, Response

from .opened import opened, stdio_command

WIDGETS = Path(__file__).with_name("widgets.py")
NOTES = "document.querySelector('.widget ul').innerText"


def _readable(_: object) -> Response:
    return Response(b"high water", "text/plain", {"access-control-allow-origin": "*"})


@pytest.fixture(scope="module")
def declared() -> Iterator[Loopback]:
    """The server that the widget may reach."""
    with Loopback({"/": _readable}) as started:
        yield started


@pytest.fixture(scope="module")
def server(declared: Loopback) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECLARED_ORIGIN", declared.url)
        with serving(WIDGETS) as started:
            yield started


def choose(browser: Browser, url: str, tool: str) -> None:
    """Open the console, and a tool in it."""
    browser.open("about:blank")
    browser.viewport(1000, 800)
    browser.open(url)
    browser.until("document.querySelector('.list li') && true")
    browser.click(f".list button:has(strong:text-is('{tool}'))")


@pytest.fixture
def shown(browser: Browser, server: Server) -> Browser:
    """The console after a call of the tool with the widget."""
    show(browser, server, "Oslo")
    browser.until("document.querySelector('h1').textContent === 'Oslo: 1.5 m'", "widget")
    return browser


def show(browser: Browser, server: Server, harbour: str) -> None:
    choose(browser, f"{server.url}/docs", "tide")
    browser.fill(".fields :is(input, textarea)[id*='harbour']", harbour)
    browser.click("button.main")


def noted(browser: Browser, text: str) -> bool:
    """Whether the console comes to show that the widget did this."""
    return bool(browser.until(f"{NOTES}.includes({text!r})"))


def fetched(browser: Browser, url: str) -> str:
    """What the widget gets from an address: the text, or the error."""
    fetching = f"fetch({url!r}).then((answer) => answer.text(), String)"
    return str(browser.run(fetching, "widget"))


def test_a_widget_calls_the_tools_that_are_for_widgets(shown: Browser) -> None:
    shown.click("#next", "widget")

    shown.until("document.querySelector('#answer').textContent === 'then 2.25 m'", "widget")
    assert noted(shown, "The widget called next_tide")
    assert shown.errors() == []


def test_a_tool_that_is_only_for_models_is_refused_to_a_widget(shown: Browser) -> None:
    shown.click("#model", "widget")

    shown.until(
        "document.querySelector('#answer').textContent.includes('only for models')", "widget"
    )
    assert noted(shown, "The tool secret is only for models")


def test_a_person_sees_what_a_widget_writes_and_opens_its_links(shown: Browser) -> None:
    shown.click("#talk", "widget")
    assert noted(shown, "The widget wrote a message")
    shown.click(".widget summary")
    assert noted(shown, "How high is the water?")

    shown.click("#link", "widget")
    assert noted(shown, "The widget wants to open https://example.com/map")

    link = "document.querySelector('.widget a')"
    assert shown.run(f"{link}.href") == "https://example.com/map"
    assert shown.run(f"{link}.rel") == "noopener noreferrer"


@pytest.mark.parametrize(("first", "other"), [("light", "Dark"), ("dark", "Light")])
def test_a_widget_has_the_theme_of_the_person_and_then_the_chosen_one(
    browser: Browser, server: Server, first: str, other: str
) -> None:
    browser.open("about:blank")
    browser.scheme(first)
    try:
        show(browser, server, "Oslo")
        browser.until(f"document.querySelector('#theme').textContent === '{first}'", "widget")
        browser.until("document.querySelector('h1').textContent === 'Oslo: 1.5 m'", "widget")
        colour = "getComputedStyle(document.body).color"
        before = browser.run(colour, "widget")

        browser.click(f".widget label:has-text('{other}')")

        browser.until(
            f"document.querySelector('#theme').textContent === '{other.lower()}'", "widget"
        )
        assert browser.run(colour, "widget") != before, "the console's colours have both themes"
        assert browser.run("document.querySelector('h1').textContent", "widget") == "Oslo: 1.5 m"
    finally:
        browser.scheme("light")


def test_a_widget_is_read_and_shown_again(shown: Browser) -> None:
    shown.click("#talk", "widget")
    assert noted(shown, "The widget wrote a message")
    shown.run("document.querySelector('h1').textContent = 'changed'", "widget")

    shown.click(".widget button:text-is('Reload')")

    shown.until("document.querySelector('h1').textContent === 'Oslo: 1.5 m'", "widget")
    assert shown.run(NOTES) == ""


def test_a_widget_reaches_only_the_origins_that_it_declares(
    shown: Browser, declared: Loopback, server: Server
) -> None:
    with Loopback({"/": _readable}) as other:
        assert fetched(shown, declared.url) == "high water"
        assert fetched(shown, other.url).startswith("TypeError")
        assert fetched(shown, f"{server.url}/functions").startswith("TypeError")

        assert other.asked == []


def test_a_widget_has_no_way_into_the_console(shown: Browser) -> None:
    tried = """[
      () => parent.document.title,
      () => localStorage.length,
      () => document.cookie,
      () => (top.location.href = "about:blank"),
    ].map((act) => { try { act(); return "done"; } catch (error) { return error.name; } })"""

    assert shown.run(tried, "widget") == ["SecurityError"] * 4
    assert shown.run("self.origin", "widget") == "null"
    assert shown.run("document.querySelectorAll('script').length") == 1


@pytest.mark.parametrize("size", [(1280, 800), (360, 640)], ids=["wide", "narrow"])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious_beside_a_widget(
    shown: Browser, server: Server, colours: str, size: tuple[int, int]
) -> None:
    shown.viewport(*size)
    shown.scheme(colours)
    shown.click("#talk", "widget")
    shown.click("#link", "widget")
    shown.click("#model", "widget")
    assert noted(shown, "only for models")
    shown.until("document.querySelector('.models')")

    found = shown.axe("serious", "critical")
    is_wide = shown.run("document.documentElement.scrollWidth > innerWidth")
    shown.scheme("light")

    assert found == []
    assert not is_wide
    assert [url for url in shown.requests() if not url.startswith(server.url)] == []
    assert shown.logged() == []


@pytest.mark.parametrize(
    "address", ["location.pathname + '?csp=' + encodeURIComponent(CSP)", "'/functions'"]
)
def test_a_widget_that_leaves_its_page_is_closed(
    shown: Browser, declared: Loopback, address: str
) -> None:
    """Another page could have another policy, and the widget would send the reply anywhere."""
    csp = json.dumps({"connectDomains": [declared.url]})
    shown.run(f"location.href = {address.replace('CSP', json.dumps(csp))}", "widget")

    left = "document.querySelector('.widget [role=alert]')?.innerText"
    assert "The widget left its page" in shown.until(left)
    assert shown.run("document.querySelectorAll('iframe').length") == 0

    shown.click(".widget >> role=button[name='Reload']")
    assert shown.until("document.querySelector('h1').textContent === 'Oslo: 1.5 m'", "widget")


def test_a_failed_call_is_shown_by_the_widget_too(browser: Browser, server: Server) -> None:
    show(browser, server, "Atlantis")

    browser.until("document.querySelector('[role=alert]')?.innerText", "widget")
    prompt = browser.run("document.querySelector('[role=alert]').innerText", "widget")

    assert "no harbour Atlantis" in prompt


def test_a_widget_that_the_person_may_not_read_says_why(browser: Browser, server: Server) -> None:
    choose(browser, f"{server.url}/docs", "chart")
    browser.click("button.main")

    problem = browser.until("document.querySelector('.widget [role=alert]')?.innerText")

    assert "only for pilots" in problem
    assert browser.run("document.querySelectorAll('iframe').length") == 0


def test_a_call_without_mcp_says_how_to_see_the_widget(browser: Browser, server: Server) -> None:
    choose(browser, f"{server.url}/docs", "chart")
    browser.click("label.pill:has-text('REST')")
    browser.click("button.main")

    assert browser.until(
        "document.querySelector('.reply').innerText.includes('over MCP to see its widget')"
    )


def test_widgets_of_other_servers_are_not_shown(browser: Browser) -> None:
    with opened(stdio_command(WIDGETS)) as console:
        choose(browser, console.page, "tide")
        browser.fill(".fields :is(input, textarea)[id*='harbour']", "Oslo")
        browser.click("button.main")

        browser.until("document.querySelector('.reply').innerText.includes('has a widget')")
        assert browser.run("document.querySelectorAll('iframe').length") == 0
        assert console.http.get("/console/frame").status_code == 404


def test_the_frame_is_sandboxed_and_only_the_console_may_show_it(server: Server) -> None:
    csp = {"connectDomains": ["https://a.example"], "resourceDomains": ["https://*.b.example"]}

    frame = httpx.get(f"{server.url}/console/frame", params={"csp": json.dumps(csp)})
    policy = dict(
        each.strip().partition(" ")[::2]
        for each in frame.headers["Content-Security-Policy"].split(";")
    )

    assert policy["sandbox"] == "allow-scripts"
    assert policy["frame-ancestors"] == "'self'"
    assert policy["default-src"] == policy["frame-src"] == policy["base-uri"] == "'none'"
    assert policy["connect-src"] == "https://a.example"
    assert policy["script-src"] == "'unsafe-inline' https://*.b.example"
    assert frame.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "csp",
    [
        {"connectDomains": ["https://a.example; sandbox allow-same-origin"]},
        {"resourceDomains": ["*"]},
        {"frameDomains": ["javascript:"]},
        {"baseUriDomains": ["https://a.example\r\nSet-Cookie: a=b"]},
        {"connectDomains": "https://a.example"},
        ["https://a.example"],
    ],
)
def test_a_policy_that_is_no_list_of_origins_is_refused(server: Server, csp: object) -> None:
    frame = httpx.get(f"{server.url}/console/frame", params={"csp": json.dumps(csp)})

    assert frame.status_code == 400
    assert "widget's csp" in frame.json()["error"]
    assert "set-cookie" not in frame.headers
