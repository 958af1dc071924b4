"""Tools that exit or interrupt the program over HTTP: only their call fails."""

from __future__ import annotations

import json

import pytest
from tests.fuzz.http_client import ServedApp, raw_post, read_to_end, stateless_call
from tests.fuzz.stdio_client import call


@pytest.mark.parametrize("tool", ["exit_async", "raise_interrupt"])
@pytest.mark.parametrize("route", ["stateful", "stateless", "rest", "message"])
def test_a_tool_that_exits_or_interrupts_fails_only_its_call(
    shared_app: ServedApp, tool: str, route: str
) -> None:
    if route == "stateful":
        response = shared_app.post(call(1, tool), shared_app.initialize())
    elif route == "stateless":
        response = shared_app.post_stateless(stateless_call(1, tool))
    elif route == "message":
        response = shared_app.send(json.dumps(call(1, tool)).encode(), path="/message")
    else:
        connection = shared_app.connect()
        connection.sendall(raw_post(b"{}", {"Connection": "close"}, f"/functions/{tool}"))
        received = read_to_end(connection)
        assert b"x-error-code: TOOL_EXECUTION_ERROR" in received
        assert b"hunter2" not in received
        assert shared_app.still_serves()
        return

    assert response.status == 200
    assert response.frame["result"]["isError"] is True
    assert shared_app.still_serves()


@pytest.mark.parametrize("tool", ["raise_inline", "raise_async"])
@pytest.mark.parametrize("name", ["KeyboardInterrupt", "GeneratorExit", "CancelledError"])
def test_an_interrupt_or_cancellation_that_a_tool_raises_is_masked(
    shared_app: ServedApp, tool: str, name: str
) -> None:
    connection = shared_app.connect()
    body = json.dumps({"kind": name}).encode()
    connection.sendall(raw_post(body, {"Connection": "close"}, f"/functions/{tool}"))
    received = read_to_end(connection)
    frames = [
        shared_app.post(call(1, tool, kind=name), shared_app.initialize()).frame,
        shared_app.post_stateless(stateless_call(1, tool, kind=name)).frame,
    ]

    assert b"x-error-code: TOOL_EXECUTION_ERROR" in received
    assert b"(reference " in received
    assert b"hunter2" not in received
    texts = [frame["result"]["content"][0]["text"] for frame in frames]
    assert ["(reference " in text for text in texts] == [True, True]
    assert shared_app.still_serves()
