"""The bridge in a browser: what a widget asks of an MCP Apps host, the theme and the size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.widgets.browser_driver import BRIDGE
from tests.widgets.conftest import IMPATIENT, INITIALIZED, HostPage

UNKNOWN = {"code": -32601, "message": "unknown method"}
FAILED = "(error) => [error.code, error.message]"


def test_a_tool_is_called_through_the_host(host: HostPage) -> None:
    content = [{"type": "text", "text": "3"}]
    answer = {"content": content, "structuredContent": {"total": 3}, "_meta": {"page": 1}}
    host.answer("tools/call", result=answer)
    host.show()

    result = host.run("app.call('add', {x: 1, y: 2})")

    expected = {"data": {"total": 3}, "text": "3", "meta": {"page": 1}, "error": None}
    assert result == expected
    assert host.wait_for("tools/call") == {"name": "add", "arguments": {"x": 1, "y": 2}}


def test_a_call_waits_for_the_handshake(host: HostPage) -> None:
    host.answer("tools/call", result={"content": []})

    host.show("answerback.connect().call('add')")
    host.wait_for("tools/call")

    assert host.methods().index("ui/notifications/initialized") < host.methods().index("tools/call")


def test_a_call_that_the_host_does_not_answer_ends_with_a_clear_error(host: HostPage) -> None:
    host.show(IMPATIENT)

    result = host.run("app.call('add')")

    message = "the host did not answer tools/call within 0.3 seconds"
    assert result["error"] == {"code": "TIMEOUT", "message": message}
    assert result["data"] is None


def test_a_call_that_the_host_refuses_ends_with_its_message(host: HostPage) -> None:
    host.answer("tools/call", error={"code": -32602, "message": "not allowed"})
    host.show()

    result = host.run("app.call('add')")

    message = "the host refused tools/call: not allowed"
    assert result["error"] == {"code": "HOST_ERROR", "message": message}


REQUESTS = [
    ("app.openLink('https://a.example/')", "ui/open-link", "openLink"),
    ("app.sendMessage('Hello')", "ui/message", "sendMessage"),
    ("app.requestDisplayMode('pip')", "ui/request-display-mode", "requestDisplayMode"),
]
PARAMETERS: dict[str, Any] = {
    "ui/open-link": {"url": "https://a.example/"},
    "ui/message": {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
    "ui/request-display-mode": {"mode": "pip"},
}


@pytest.mark.parametrize(("request_", "method", "old"), REQUESTS)
def test_a_request_reaches_the_host(host: HostPage, request_: str, method: str, old: str) -> None:
    host.answer(method, result={})
    host.show()

    host.run(request_)

    assert host.wait_for(method) == PARAMETERS[method]
    assert old not in host.methods()


@pytest.mark.parametrize(("request_", "method", "old"), REQUESTS)
def test_a_host_with_the_old_names_gets_the_request_under_them(
    host: HostPage, request_: str, method: str, old: str
) -> None:
    host.answer(method, error=UNKNOWN)
    host.answer(old, result={})
    host.show()

    host.run(request_)

    assert host.wait_for(old) == PARAMETERS[method]


@pytest.mark.parametrize("request_", ["openLink('https://a.example/')", "sendMessage('Hello')"])
def test_a_request_that_the_host_turns_down_fails(host: HostPage, request_: str) -> None:
    host.answer("ui/open-link", result={"isError": True})
    host.answer("ui/message", result={"isError": True})
    host.show()

    code, _ = host.run(f"app.{request_}.catch({FAILED})")

    assert code == "HOST_ERROR"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "plans", ""])
def test_only_web_addresses_are_opened(host: HostPage, url: str) -> None:
    host.show()

    code, _ = host.run(f"app.openLink('{url}').catch({FAILED})")

    assert code == "BAD_LINK"
    assert "ui/open-link" not in host.methods()


def test_the_host_decides_the_display_mode(host: HostPage) -> None:
    host.answer("ui/request-display-mode", result={"mode": "inline"})
    host.show()

    mode = host.run("app.requestDisplayMode('fullscreen')")

    assert mode == "inline"


def test_the_state_is_kept_by_the_page(host: HostPage) -> None:
    host.show()

    host.run("app.setState({tab: 2})")

    assert host.run("app.state") == {"tab": 2}


def test_the_theme_and_the_variables_of_the_host_are_applied(host: HostPage) -> None:
    variables = {"--color-text-primary": "red", "color": "blue", "--font-sans": 7}
    context = {"theme": "dark", "styles": {"variables": variables}}
    host.answer("ui/initialize", result={**INITIALIZED, "hostContext": context})
    host.show("const app = answerback.connect(), themes = []; app.onTheme((t) => themes.push(t))")

    host.until("app.theme === 'dark'")
    host.post("ui/notifications/host-context-changed", {"theme": "light"})

    host.until("app.theme === 'light'")
    assert host.run("themes") == ["light", "dark", "light"]
    page = host.run(
        "[document.documentElement.dataset.theme, document.documentElement.style.cssText]"
    )
    assert page == ["light", "--color-text-primary: red; color-scheme: light;"]


def test_the_size_is_reported_when_it_changes(host: HostPage) -> None:
    host.show(body="<main style='height: 100px'></main>")
    first = host.wait_for("ui/notifications/size-changed")

    host.run("{ document.querySelector('main').style.height = '150px'; }")

    sizes = "received.filter((one) => one.method === 'ui/notifications/size-changed')"
    host.browser.until(f"{sizes}.length === 2")
    second = host.browser.run(f"{sizes}[1].params")
    assert second == {"width": first["width"], "height": first["height"] + 50}


def test_the_size_is_not_reported_if_the_author_does_not_want_it(host: HostPage) -> None:
    host.answer("tools/call", result={})
    host.show("const app = answerback.connect({autoResize: false})", "<main>Accounts</main>")

    # Two frames later an observer would have reported.
    host.run("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    host.run("app.call('add')")

    assert "ui/notifications/size-changed" not in host.methods()


def test_a_host_older_than_the_specification_gets_the_size_under_both_names(host: HostPage) -> None:
    host.answer("ui/initialize", result={"protocolVersion": "0.1"})

    host.show(body="<main style='height: 100px'></main>")

    old = host.wait_for("notifications/size_changed")
    assert old == host.wait_for("ui/notifications/size-changed")


def test_connecting_twice_gives_the_same_app(host: HostPage) -> None:
    host.show()

    assert host.run("answerback.connect() === app")


def test_a_bundler_imports_the_bridge_as_a_module(host: HostPage, tmp_path: Path) -> None:
    entry = tmp_path / "entry.js"
    entry.write_text(f"import {{ connect }} from {str(BRIDGE)!r}; window.app = connect();")
    bundled = host.browser.bundle(entry)

    host.show(f"{{ {bundled} }}")

    assert host.until("app.host") == "mcp-apps"
    assert host.wait_for("ui/notifications/initialized") == {}
