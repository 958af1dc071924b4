"""The widget of examples/accounts.py in Chromium: both tools, a click, and a refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from tests.conftest import ROOT, serving
from tests.widgets.browser_driver import PAGES, Browser, Loopback, Response, page
from tests.widgets.two_hosts import forward_to

HOSTS = pytest.mark.parametrize("host_name", ["AppsHost", "ChatGpt"])
ROWS = "[...document.querySelectorAll('#{} tr')].map((row) => row.innerText.replace(/\\s+/g, ' '))"


class Host:
    """A page with two hosts, whose user is logged in at the example."""

    def __init__(self, browser: Browser, sandbox: str, bank: httpx.Client) -> None:
        self.browser = browser
        self._sandbox = sandbox
        self._bank = bank
        self.url = ""

    def show(self, host: str, user: str, tool: str, **arguments: str) -> None:
        asked = {"user": user, "scopes": ["accounts:read"]}
        token = self._bank.post("/dev/token", json=asked).json()["access_token"]
        self._bank.headers["authorization"] = f"Bearer {token}"
        self.browser.open(self.url)
        given = {"sandbox": self._sandbox, "tool": tool, "args": arguments}
        self.browser.run(f"openIn{host}({json.dumps(given)})")

    def rows(self, section: str) -> list[str]:
        rows = ROWS.replace("{}", section)
        return list(self.browser.until(f"{rows}.length && {rows}", "widget"))


@pytest.fixture(scope="module")
def host(browser: Browser, sandbox_url: str) -> Iterator[Host]:
    script = browser.bundle(PAGES / "hosts.js").encode()
    with (
        serving(ROOT / "examples" / "accounts.py") as server,
        httpx.Client(base_url=server.url) as bank,
    ):
        made = Host(browser, sandbox_url, bank)
        routes = {
            "/accounts-hosts.html": page("hosts.html"),
            "/hosts.js": lambda _: Response(script, "text/javascript; charset=utf-8"),
            "/mcp": forward_to(bank),
        }
        with Loopback(routes) as pages:
            made.url = f"{pages.url}/accounts-hosts.html"
            yield made


@HOSTS
def test_a_click_on_an_account_shows_its_transactions(host: Host, host_name: str) -> None:
    host.show(host_name, "cy", "balances")
    balances = host.rows("balances")

    host.browser.click("text=Checking", "widget")

    assert balances[:2] == ["Checking $2,345.67", "Savings $8,900.00"]
    assert host.rows("transactions") == [
        "2026-11-13 Salary $3,100.00",
        "2026-11-05 Groceries -$84.32",
        "2026-11-02 Rent -$1,200.00",
    ]
    assert host.browser.errors() == []


@HOSTS
def test_the_same_widget_shows_the_transactions_of_a_call(host: Host, host_name: str) -> None:
    host.show(host_name, "cy", "transactions", account="Savings")

    assert host.rows("transactions") == ["2026-11-14 Transfer from Checking $500.00"]


@HOSTS
def test_a_user_without_a_plan_sees_the_way_to_subscribe(host: Host, host_name: str) -> None:
    host.show(host_name, "ada", "balances")
    host.browser.until("document.querySelector('[role=alert]')", "widget")

    drawn = host.browser.accessible("[role=alert]", "widget")

    assert 'heading "A subscription is needed"' in drawn
    assert 'button "See plans"' in drawn
    assert "You have no active 'pro' subscription." in drawn
