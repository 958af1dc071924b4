"""Replies are found in recorded values, with the context that the recording gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from answerback.rules.lint.inputs import Conversation

REPLY = {"content": [{"type": "text", "text": "5 °C and cloudy in Oslo"}]}


def replies(*recorded: Any) -> list[tuple[Any, str]]:
    conversation = Conversation()
    return [
        (each.reply, each.pointer) for value in recorded for each in conversation.replies(value)
    ]


def call(request_id: int, tool: str = "add") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": tool}}


def result(request_id: int, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def test_only_responses_to_tool_calls_are_replies() -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}

    assert replies(ping, result(1, {}), notification, call(2), result(2, REPLY)) == [
        (REPLY, "/result")
    ]


def test_a_response_without_its_request_is_recognised_by_its_members() -> None:
    contents = {"contents": [{"uri": "file:///a", "text": "a"}]}

    assert replies(result(1, REPLY), result(2, contents), result(3, {})) == [(REPLY, "/result")]


@pytest.mark.parametrize(
    ("recorded", "pointer"),
    [
        ({"direction": "in", "message": result(1, REPLY)}, "/message/result"),
        ({"ts": 1, "payload": json.dumps(result(1, REPLY))}, "/payload/result"),
        ({"request": call(1), "response": result(1, REPLY)}, "/response/result"),
        ({"request": json.dumps(call(1)), "response": json.dumps(REPLY)}, "/response"),
        (
            {
                "request": {"url": "/mcp", "body": json.dumps(call(1))},
                "response": {"status": 200, "body": json.dumps(result(1, REPLY))},
            },
            "/response/result",
        ),
        (
            {"direction": "request", "message": call(1), "response": result(1, REPLY)},
            "/response/result",
        ),
        ([REPLY], "/0"),
        ([call(1), result(1, REPLY)], "/1/result"),
        (REPLY, ""),
    ],
)
def test_replies_are_found_in_recordings_of_proxies_and_the_inspector(
    recorded: Any, pointer: str
) -> None:
    assert replies(recorded) == [(REPLY, pointer)]


def test_a_log_entry_without_a_message_is_not_a_reply() -> None:
    assert replies({"level": "info", "msg": "listening on 8000"}) == []


def test_version_and_schemas_are_learned_from_the_conversation() -> None:
    schema = {"type": "object"}
    tools = {"tools": [{"name": "add", "inputSchema": schema, "outputSchema": schema}]}
    conversation = Conversation()
    initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    recorded = [initialize, result(0, {"protocolVersion": "2025-06-18"}), listing, result(1, tools)]

    found = [
        each
        for value in [*recorded, call(2), result(2, REPLY)]
        for each in conversation.replies(value)
    ]

    assert found[-1].context.schema == schema
    assert found[-1].context.version is not None
    assert found[-1].context.version.name == "2025-06-18"


def test_the_number_of_requests_without_a_response_is_bounded() -> None:
    conversation = Conversation()

    for request_id in range(20_000):
        list(conversation.replies(call(request_id)))

    assert len(conversation._pending) <= 10_000


def test_a_reply_is_checked_by_the_size_that_its_tool_declares() -> None:
    tool = {"name": "add", "inputSchema": {}, "_meta": {"anthropic/maxResultSizeChars": 500}}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    recorded = [listing, result(1, {"tools": [tool]}), call(2), result(2, REPLY)]
    conversation = Conversation()

    contexts = [each.context for value in recorded for each in conversation.replies(value)]

    assert [context.max_chars for context in contexts] == [None, 500]
