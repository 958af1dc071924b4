"""A browser for the tests of widgets, and a host page whose answers each test gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.widgets.browser_driver import BRIDGE, Browser, Loopback, chromium, page, sandbox

CONNECT = """
const app = answerback.connect({handshakeTimeout: 200, timeout: 10000});
const seen = [];
app.onData((data, details) => seen.push({data, ...details}));
"""
IMPATIENT = CONNECT.replace("timeout: 10000", "timeout: 300")
INITIALIZED = {
    "protocolVersion": "2026-01-26",
    "hostInfo": {"name": "host of the test", "version": "1"},
    "hostCapabilities": {},
    "hostContext": {},
}


class HostPage:
    """A host page whose answers the test gives, with a widget in it that uses the bridge."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.browser.run("reset()")
        self.answer("ui/initialize", result=INITIALIZED)

    def answer(self, method: str, **reply: Any) -> None:
        """From now on a request of *method* gets this `result` or `error`, and `id` if given."""
        self.browser.run(f"answers[{json.dumps(method)}] = {json.dumps(reply)}")

    def silent(self) -> None:
        """From now on no request is answered."""
        self.browser.run("answers = {}")

    def show(
        self, script: str = CONNECT, body: str = "", openai: dict[str, Any] | None = None
    ) -> None:
        """Show a widget with the bridge and *script*; with *openai*, as ChatGPT does."""
        html = f"<!doctype html><script>{BRIDGE.read_text()}</script><body>{body}"
        html += f"<script>{script}</script>"
        self.browser.run(f"show({json.dumps(html)}, {json.dumps({'openai': openai})})")
        self.browser.until("document.readyState === 'complete' && !!window.answerback", "widget")

    def post(self, method: str, params: dict[str, Any], **members: Any) -> None:
        """Send a message to the widget."""
        self.browser.run(f"post({json.dumps({'method': method, 'params': params, **members})})")

    def show_result(self, **result: Any) -> None:
        self.post("ui/notifications/tool-result", {"content": [], **result})

    def wait_for(self, method: str) -> Any:
        """The parameters of the first message of *method* that the widget sent."""
        found = f"received.find((message) => message.method === {json.dumps(method)})"
        return self.browser.until(found)["params"]

    def methods(self) -> list[str]:
        """The methods of all messages that the widget sent."""
        own = "(method) => method && !method.startsWith('ui/notifications/sandbox')"
        return list(self.browser.run(f"methods().filter({own})"))

    def until(self, expression: str) -> Any:
        """The first true value of *expression* in the widget."""
        return self.browser.until(expression, "widget")

    def run(self, expression: str) -> Any:
        """The value of *expression* in the widget."""
        return self.browser.run(expression, "widget")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def sandbox_url() -> Iterator[str]:
    with sandbox() as server:
        yield server.url


@pytest.fixture(scope="session")
def host_url(sandbox_url: str) -> Iterator[str]:
    with Loopback({"/host.html": page("host.html", SANDBOX=json.dumps(sandbox_url))}) as server:
        yield f"{server.url}/host.html"


@pytest.fixture
def host(browser: Browser, host_url: str) -> HostPage:
    browser.open(host_url)
    return HostPage(browser)
