"""A widget of a real server in Chromium, in two hosts that enforce its declared CSP.

One host is built on the app bridge of ext-apps, the other is like ChatGPT.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.widgets.browser_driver import Browser
from tests.widgets.two_hosts import Hosts, two_hosts

HOSTS = pytest.mark.parametrize("host", ["AppsHost", "ChatGpt"])
ROWS = "[...document.querySelectorAll('tr')].map((row) => row.innerText.replace(/\\s+/, ' '))"
FULL = f"{ROWS}.length && {ROWS}"
ACCOUNTS = ["Checking €1,250.00", "Savings €18,400.50"]


@pytest.fixture(scope="session")
def hosts(browser: Browser, sandbox_url: str) -> Iterator[Hosts]:
    with two_hosts(browser, sandbox_url) as opened:
        yield opened


@HOSTS
def test_the_widget_shows_the_data_of_the_tool(hosts: Hosts, host: str) -> None:
    hosts.show(host)

    assert hosts.browser.until(FULL, "widget") == ACCOUNTS
    assert (
        hosts.browser.run("document.querySelector('h1').innerText", "widget") == "Accounts of Ada"
    )
    assert hosts.browser.errors() == []


@HOSTS
def test_the_widget_calls_a_tool_back(hosts: Hosts, host: str) -> None:
    hosts.show(host)
    hosts.browser.until(FULL, "widget")

    hosts.browser.click("text=Savings", "widget")

    items = "[...document.querySelectorAll('li')].map((item) => item.innerText)"
    lines = hosts.browser.until(f"{items}.length && {items}", "widget")
    assert lines == ["Savings: rent -800.00", "Savings: salary 2100.00"]


@HOSTS
def test_the_widget_survives_an_early_result(hosts: Hosts, host: str) -> None:
    hosts.show(host, when="early")

    assert hosts.browser.until(FULL, "widget") == ACCOUNTS
    assert hosts.browser.run("shown", "widget") == 1


@HOSTS
def test_the_widget_survives_a_late_result(hosts: Hosts, host: str) -> None:
    hosts.show(host, when="late")
    hosts.browser.until("window.app !== 0 && app.ready.then(() => true)", "widget")
    before = hosts.browser.run(ROWS, "widget")

    hosts.browser.run("release()")

    assert before == []
    assert hosts.browser.until(FULL, "widget") == ACCOUNTS


def test_the_widget_shows_data_that_the_host_dropped(hosts: Hosts) -> None:
    hosts.show("AppsHost", drop=True)

    assert hosts.browser.until(FULL, "widget") == ACCOUNTS


@HOSTS
def test_the_widget_draws_a_refusal_whose_button_opens_the_link(hosts: Hosts, host: str) -> None:
    hosts.show(host, owner="Bob")
    hosts.browser.until("document.querySelector('[role=alert]')", "widget")

    drawn = hosts.browser.accessible("body", "widget").splitlines()
    hosts.browser.click("[role=alert] button", "widget")

    assert drawn == [
        "- alert:",
        '  - heading "A subscription is needed" [level=2]',
        "  - paragraph: You have no active 'pro' subscription. Subscribe to use accounts.",
        "  - paragraph: Open the link, then try again.",
        '  - button "See plans"',
    ]
    opened = "(entry) => entry.link ?? entry['openai/openExternal']?.[0].href"
    link = hosts.browser.until(f"log.map({opened}).find(Boolean)")
    assert link.startswith("https://bank.example/plans?token=")


@HOSTS
def test_the_widget_reaches_the_declared_origin_and_no_other(hosts: Hosts, host: str) -> None:
    hosts.show(host)
    hosts.browser.until(FULL, "widget")
    for server in (hosts.declared, hosts.undeclared):
        server.asked.clear()

    fetched = "fetch({!r}).then((got) => got.text(), (error) => error.name)".format
    declared = hosts.browser.run(fetched(hosts.declared.url), "widget")
    undeclared = hosts.browser.run(fetched(hosts.undeclared.url), "widget")
    image = f"Object.assign(new Image(), {{src: '{hosts.undeclared.url}/a.png'}}).decode()"
    pictured = hosts.browser.run(f"{image}.catch((error) => error.name)", "widget")

    assert (declared, hosts.declared.asked) == ("reached", ["/"])
    assert (undeclared, pictured) == ("TypeError", "EncodingError")
    assert hosts.undeclared.asked == []


def test_the_frame_takes_the_height_that_the_widget_reports(hosts: Hosts) -> None:
    hosts.show("AppsHost")
    hosts.browser.until(FULL, "widget")

    content = hosts.browser.run("document.documentElement.offsetHeight", "widget")

    assert hosts.browser.until(f"log.some((entry) => entry.size === {content})")
