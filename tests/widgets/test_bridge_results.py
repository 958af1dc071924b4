"""The bridge in a browser: when results arrive, and in which form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.widgets.conftest import CONNECT, INITIALIZED, HostPage

DATA = {"balance": 12}
OLD_HOST = {"protocolVersion": "0.1", "host": {"name": "old"}, "hostContext": {"theme": "dark"}}


def text(value: Any) -> dict[str, str]:
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}


def test_the_data_arrives_with_the_text_the_metadata_and_the_arguments(host: HostPage) -> None:
    host.show()
    host.wait_for("ui/notifications/initialized")

    host.post("ui/notifications/tool-input", {"arguments": {"owner": "Ada"}})
    host.show_result(structuredContent=DATA, content=[text("12 euros")], _meta={"secret": 7})

    assert host.until("seen.length && seen") == [
        {"data": DATA, "text": "12 euros", "meta": {"secret": 7}, "input": {"owner": "Ada"}}
    ]


def test_a_member_that_was_added_for_models_is_not_in_the_data(host: HostPage) -> None:
    host.show()
    host.wait_for("ui/notifications/initialized")

    sent = {**DATA, "message": "12 euros"}
    meta = {"answerback/added": "message"}
    host.show_result(structuredContent=sent, content=[text("12 euros")], _meta=meta)

    (seen,) = host.until("seen.length && seen")
    assert (seen["data"], seen["text"]) == (DATA, "12 euros")


def test_lines_that_were_added_for_models_are_not_in_the_text(host: HostPage) -> None:
    host.show()
    host.wait_for("ui/notifications/initialized")

    lines = {**text("notes: file:///notes"), "_meta": {"answerback/added": True}}
    host.show_result(structuredContent=DATA, content=[text("12 euros"), lines])

    (seen,) = host.until("seen.length && seen")
    assert (seen["data"], seen["text"]) == (DATA, "12 euros")


def test_the_handshake_is_initialize_then_initialized(host: HostPage) -> None:
    host.show("answerback.connect({name: 'accounts', version: '2', displayModes: ['pip']})")

    host.wait_for("ui/notifications/initialized")

    assert host.methods()[:2] == ["ui/initialize", "ui/notifications/initialized"]
    assert host.wait_for("ui/initialize") == {
        "protocolVersion": "2026-01-26",
        "appInfo": {"name": "accounts", "version": "2"},
        "appCapabilities": {"availableDisplayModes": ["pip"]},
    }


def test_a_result_before_the_answer_to_initialize_is_delivered(host: HostPage) -> None:
    host.silent()
    host.show("const app = answerback.connect(); const seen = []; app.onData((d) => seen.push(d))")
    host.wait_for("ui/initialize")

    host.show_result(structuredContent=DATA)

    assert host.until("seen.length && seen") == [DATA]


def test_a_result_before_the_widget_connects_is_delivered(host: HostPage) -> None:
    host.show("let app; const seen = [];")
    host.show_result(structuredContent=DATA)
    # Messages keep their order: when this one is there, the result was there before.
    host.run("addEventListener('message', ({data}) => window.last = data.method)")
    host.post("marker", {})
    host.until("window.last === 'marker'")

    host.run("{ app = answerback.connect(); app.onData((data) => seen.push(data)); }")

    assert host.until("seen.length && seen") == [DATA]


def test_a_listener_that_comes_after_the_result_gets_it_once(host: HostPage) -> None:
    host.show()
    host.show_result(structuredContent=DATA)
    host.until("seen.length")

    host.run("{ window.late = []; app.onData((data) => late.push(data)); }")

    assert host.until("late.length && late") == [DATA]
    assert host.run("seen.length") == 1


def test_a_result_long_after_the_handshake_failed_is_delivered(host: HostPage) -> None:
    host.silent()
    host.show()
    host.run("app.ready.then(() => true)")

    host.show_result(structuredContent=DATA)

    assert host.until("seen.length && seen[0].data") == DATA


def test_each_further_result_replaces_the_one_before(host: HostPage) -> None:
    host.show()

    host.show_result(structuredContent={"balance": 1})
    host.until("seen.length === 1")
    host.show_result(structuredContent={"balance": 2})

    assert host.until("seen.length === 2 && seen.map((one) => one.data.balance)") == [1, 2]


def test_a_listener_that_throws_does_not_keep_the_data_from_the_others(host: HostPage) -> None:
    host.show(f"answerback.connect().onData(() => {{ throw new Error('mine') }}); {CONNECT}")

    host.show_result(structuredContent=DATA)

    assert host.until("seen.length && seen[0].data") == DATA


def test_a_listener_that_was_ended_gets_nothing_more(host: HostPage) -> None:
    host.show(f"{CONNECT} const ended = []; app.onData((data) => ended.push(data))();")

    host.show_result(structuredContent=DATA)

    assert host.until("seen.length") == 1
    assert host.run("ended") == []


@pytest.mark.parametrize(
    "result",
    [
        {"content": [text(DATA)]},
        {"content": [text("The balance:"), text(DATA)]},
        {"content": [text({"content": [], "structuredContent": DATA})]},
        {"content": [text('{"bal'), text('ance": 12}')]},
        {"content": [text(DATA)], "structuredContent": None},
    ],
    ids=["text", "second text", "whole result", "two halves", "null"],
)
def test_data_that_the_host_dropped_is_read_from_the_text(
    host: HostPage, result: dict[str, Any]
) -> None:
    host.show()

    host.post("ui/notifications/tool-result", result)

    assert host.until("seen.length && seen[0].data") == DATA


def test_text_that_is_no_json_leaves_the_data_null(host: HostPage) -> None:
    host.show()

    host.show_result(content=[text("{not json"), text("12 euros")])

    seen = host.until("seen.length && seen[0]")
    assert seen["data"] is None
    assert seen["text"] == "{not json\n12 euros"


@pytest.mark.parametrize(
    "result",
    [DATA, json.dumps(DATA), [text(DATA)], {"content": [text(DATA)]}],
    ids=["data", "string", "blocks", "result"],
)
def test_a_host_older_than_the_specification_is_understood(host: HostPage, result: Any) -> None:
    host.answer("ui/initialize", result=OLD_HOST)
    host.show()
    host.wait_for("notifications/initialized")

    host.post("notifications/tools/call/input", {"input": {"owner": "Ada"}})
    host.post("notifications/tools/call/result", {"result": result})

    seen = host.until("seen.length && seen[0]")
    assert (seen["data"], seen["input"]) == (DATA, {"owner": "Ada"})
    assert "ui/notifications/initialized" in host.methods()
    assert host.run("app.theme") == "dark"


@pytest.mark.parametrize(
    "reply",
    [
        {"result": INITIALIZED},
        {"result": {}},
        {"result": INITIALIZED, "id": "another"},
        {"error": {"code": -32601, "message": "unknown"}},
    ],
    ids=["full", "empty", "another id", "error"],
)
def test_initialized_follows_any_reply(host: HostPage, reply: dict[str, Any]) -> None:
    host.answer("ui/initialize", **reply)

    host.show("answerback.connect({handshakeTimeout: 600000})")

    assert host.wait_for("ui/notifications/initialized") == {}


def test_initialized_is_sent_to_a_host_that_does_not_answer(host: HostPage) -> None:
    host.silent()

    host.show()
    host.wait_for("ui/notifications/initialized")

    asked = ["ui/initialize", "ui/initialize", "ui/notifications/initialized"]
    assert host.methods()[:3] == asked


def test_a_host_that_listened_too_late_gets_initialize_again(host: HostPage) -> None:
    host.silent()
    host.show("const app = answerback.connect({handshakeTimeout: 300})")
    host.wait_for("ui/initialize")

    host.answer("ui/initialize", result={**INITIALIZED, "hostContext": {"theme": "dark"}})

    assert host.until("app.theme === 'dark' && app.theme") == "dark"


def test_messages_of_other_windows_are_ignored(host: HostPage) -> None:
    forged = (
        'postMessage({jsonrpc: "2.0", method: "ui/notifications/tool-result", params: {}}, "*")'
    )
    host.show(body=f"<iframe srcdoc='<script>parent.{forged}</script>'></iframe>")
    host.run(forged)

    host.show_result(structuredContent=DATA)

    assert host.until("seen.length && seen.map((one) => one.data)") == [DATA]


def test_messages_of_another_origin_than_the_first_reply_are_ignored(host: HostPage) -> None:
    host.show()
    host.wait_for("ui/notifications/initialized")
    forged = {"jsonrpc": "2.0", "method": "ui/notifications/tool-result", "params": {"content": []}}
    event = f"{{data: {json.dumps(forged)}, source: parent, origin: 'https://other.example'}}"
    host.run(f"dispatchEvent(new MessageEvent('message', {event}))")

    host.show_result(structuredContent=DATA)

    assert host.until("seen.length && seen.map((one) => one.data)") == [DATA]


def test_messages_go_to_the_origin_of_the_first_reply_alone(host: HostPage) -> None:
    host.silent()
    host.show("const app = answerback.connect({timeout: 100, handshakeTimeout: 600000})")
    host.wait_for("ui/initialize")
    reply = {"jsonrpc": "2.0", "id": 1, "result": INITIALIZED}
    event = f"{{data: {json.dumps(reply)}, source: parent, origin: 'https://other.example'}}"
    host.run(f"dispatchEvent(new MessageEvent('message', {event}))")

    result = host.run("app.call('add')")

    assert result["error"]["code"] == "TIMEOUT"
    assert host.methods() == ["ui/initialize"]


def test_requests_of_the_host_are_answered(host: HostPage) -> None:
    host.show()
    host.wait_for("ui/notifications/initialized")

    host.post("ping", {}, id=71)
    host.post("ui/resource-teardown", {}, id=72)
    host.post("tools/list", {}, id=73)

    replies = "received.filter((one) => one.id > 70)"
    host.browser.until(f"{replies}.length === 3")
    assert host.browser.run(replies) == [
        {"jsonrpc": "2.0", "id": 71, "result": {}},
        {"jsonrpc": "2.0", "id": 72, "result": {}},
        {
            "jsonrpc": "2.0",
            "id": 73,
            "error": {"code": -32601, "message": "unknown method tools/list"},
        },
    ]
