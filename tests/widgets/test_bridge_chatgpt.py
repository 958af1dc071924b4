"""The bridge in a browser, in a host with `window.openai`; and in no host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.widgets.browser_driver import BRIDGE, Browser, Loopback, Response
from tests.widgets.conftest import CONNECT, IMPATIENT, HostPage

DATA = {"balance": 12}
REFUSAL = {"code": "LOGIN_REQUIRED", "message": "Log in.", "url": "https://login.example/"}
PROMPT = "document.querySelector('[data-answerback=refusal]')"


def show(host: HostPage, body: str = "", **globals_: Any) -> None:
    host.show(CONNECT, body, openai={"toolOutput": None, "theme": "light", **globals_})


def change(host: HostPage, **globals_: Any) -> None:
    host.post("openai/set_globals", globals_)


def test_data_that_is_there_at_the_start_is_delivered(host: HostPage) -> None:
    show(host, toolInput={"owner": "Ada"}, toolOutput=DATA, toolResponseMetadata={"secret": 7})

    assert host.until("seen.length && seen") == [
        {"data": DATA, "text": "", "meta": {"secret": 7}, "input": {"owner": "Ada"}}
    ]
    assert host.run("app.host") == "chatgpt"


def test_data_that_comes_later_is_delivered_once(host: HostPage) -> None:
    show(host)

    change(host, toolOutput=DATA)
    host.until("seen.length")
    change(host, displayMode="fullscreen")
    change(host, toolOutput={"balance": 13})

    host.until("seen.length === 2")
    assert host.run("seen.map((one) => one.data.balance)") == [12, 13]


def test_an_empty_host_delivers_nothing(host: HostPage) -> None:
    show(host, toolResponseMetadata={"status": "running"})

    change(host, theme="dark")

    host.until("app.theme === 'dark'")
    assert host.run("seen") == []


def test_chatgpt_is_not_sent_messages_of_mcp_apps(host: HostPage) -> None:
    show(host, toolOutput=DATA)

    host.until("seen.length")

    assert [method for method in host.methods() if method.startswith("ui/")] == []


@pytest.mark.parametrize(
    "globals_",
    [
        {"toolOutput": '{"balance": 12}'},
        {"toolOutput": {"content": [{"type": "text", "text": '{"balance": 12}'}]}},
        {"toolResponseMetadata": {"mcp_tool_result": {"content": [], "structuredContent": DATA}}},
        {"toolResponseMetadata": {"call_tool_result": {"content": [], "structuredContent": DATA}}},
    ],
    ids=["text", "result", "mcp_tool_result", "call_tool_result"],
)
def test_data_is_found_in_each_form(host: HostPage, globals_: dict[str, Any]) -> None:
    show(host, **globals_)

    assert host.until("seen.length && seen[0].data") == DATA


@pytest.mark.parametrize(
    "metadata",
    [
        {"answerback/refusal": REFUSAL},
        {
            "mcp_tool_result": {
                "content": [],
                "isError": True,
                "_meta": {"answerback/refusal": REFUSAL},
            }
        },
    ],
    ids=["in the metadata", "in the whole result"],
)
def test_a_refusal_is_drawn_and_its_button_opens_the_link(
    host: HostPage, metadata: dict[str, Any]
) -> None:
    show(host, toolResponseMetadata=metadata)
    host.until(PROMPT)

    host.browser.click("button", "widget")

    assert host.wait_for("openai/openExternal") == [{"href": "https://login.example/"}]
    assert host.run("seen") == []


def test_a_tool_is_called_back(host: HostPage) -> None:
    host.answer("openai/callTool", result={"structuredContent": {"total": 3}, "content": []})
    show(host)

    result = host.run("app.call('add', {x: 1, y: 2})")

    assert result == {"data": {"total": 3}, "text": "", "meta": {}, "error": None}
    assert host.wait_for("openai/callTool") == ["add", {"x": 1, "y": 2}]


def test_a_call_that_chatgpt_rejects_ends_with_its_message(host: HostPage) -> None:
    host.answer("openai/callTool", error={"message": "not accessible"})
    show(host)

    result = host.run("app.call('add')")

    assert result["error"] == {"code": "HOST_ERROR", "message": "not accessible"}


def test_a_call_that_chatgpt_does_not_answer_ends_with_a_clear_error(host: HostPage) -> None:
    host.show(IMPATIENT, openai={"toolOutput": None})

    result = host.run("app.call('add')")

    message = "the host did not answer the tool add within 0.3 seconds"
    assert result["error"] == {"code": "TIMEOUT", "message": message}


def test_messages_and_display_modes_reach_chatgpt(host: HostPage) -> None:
    host.answer("openai/sendFollowUpMessage", result=None)
    host.answer("openai/requestDisplayMode", result={"mode": "inline"})
    show(host)

    host.run("app.sendMessage('Hello')")
    mode = host.run("app.requestDisplayMode('pip')")

    assert mode == "inline"
    assert host.wait_for("openai/sendFollowUpMessage") == [{"prompt": "Hello"}]
    assert host.wait_for("openai/requestDisplayMode") == [{"mode": "pip"}]


def test_chatgpt_keeps_the_state(host: HostPage) -> None:
    show(host, widgetState={"tab": 1})
    before = host.run("app.state")

    host.run("app.setState({tab: 2})")

    assert (before, host.run("app.state")) == ({"tab": 1}, {"tab": 2})
    assert host.wait_for("openai/setWidgetState") == [{"tab": 2}]


def test_the_theme_of_chatgpt_is_applied(host: HostPage) -> None:
    show(host, theme="dark")

    assert host.run("document.documentElement.dataset.theme") == "dark"


def test_the_height_is_reported(host: HostPage) -> None:
    show(host, body="<main style='height: 300px; margin: 0'></main>")

    assert host.wait_for("openai/notifyIntrinsicHeight") == [316]


def test_a_method_that_the_host_lacks_is_named(host: HostPage) -> None:
    host.show("window.openai = {}; const app = answerback.connect();")

    error = host.run("app.openLink('https://a.example/').catch(({message}) => message)")

    assert error == "the host has no window.openai.openExternal"


def test_openai_that_appears_after_the_widget_connected_is_used(host: HostPage) -> None:
    host.silent()
    host.show()

    host.run("{ window.openai = {toolOutput: {balance: 12}}; }")
    host.run("dispatchEvent(new CustomEvent('openai:set_globals', {detail: {globals: {}}}))")

    assert host.until("seen.length && seen[0].data") == DATA
    assert host.run("app.host") == "chatgpt"


@pytest.fixture
def alone(browser: Browser) -> Iterator[Browser]:
    """The widget opened by itself, as during its development."""
    html = f"<!doctype html><script>{BRIDGE.read_text()}</script><body>"
    html += f"<script>{CONNECT}</script>"
    with Loopback({"/": lambda _: Response(html.encode())}) as server:
        browser.open(f"{server.url}/")
        yield browser


def test_a_page_outside_any_host_says_so(alone: Browser) -> None:
    assert alone.run("app.host") == "none"
    assert alone.run("app.call('add').then(({error}) => error)") == {
        "code": "NO_HOST",
        "message": "the widget is not in a host",
    }
    assert alone.errors() == []
