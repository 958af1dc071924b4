"""Replies of hostile size and shape: refused within the limits, in time, and beside other work."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import http_server
from tests.client.faulty_http import Faulty, faulty
from tests.client.test_flooding_servers import flooding
from tests.loop_clock import advance_clock

from answerback import connect, read
from answerback.errors import ToolError
from answerback.rules import validate

BLOCK = {"type": "text", "text": "x"}
MANY = b",".join([b"[]"] * 400_000)
SHAPES = {
    "lists in the data": b'{"content":[],"structuredContent":{"a":[' + MANY + b"]}}",
    "blocks": b'{"content":[' + MANY.replace(b"[]", b"{}") + b"]}",
    "NaN": b'{"content":[],"structuredContent":{"n":NaN,"a":[' + MANY + b"]}}",
}


def answers(frame: bytes) -> Any:
    """A server that answers calls with a frame, in which %d is the id."""

    def answer(server: Faulty, asked: dict[str, Any]) -> None:
        server.send_body(200, frame % asked["id"], "application/json")

    return faulty(answer)


@pytest.mark.parametrize("result", SHAPES.values(), ids=SHAPES)
def test_a_result_with_too_many_values_is_too_large(result: bytes) -> None:
    frame = b'{"jsonrpc":"2.0","id":%d,"result":' + result + b"}"

    with http_server(answers(frame)) as url, connect(url, timeout=60) as server:
        reply = server.call("unsafe")

    assert reply.error is not None
    assert reply.error.code == "TOO_LARGE"
    assert reply.error.details["may_have_run"] is True


def test_an_error_whose_data_has_too_many_values_is_too_large() -> None:
    frame = b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"x","data":[' + MANY + b"]}}"

    with http_server(answers(frame)) as url, connect(url, timeout=60) as server:
        reply = server.call("unsafe")

    assert reply.error is not None
    assert reply.error.code == "TOO_LARGE"


def test_max_values_of_connect_lets_larger_results_pass_and_refuses_smaller_ones() -> None:
    result = {"content": [], "structuredContent": {"a": [0] * 600_000}}
    frame = b'{"jsonrpc":"2.0","id":%d,"result":' + json.dumps(result).encode() + b"}"

    with http_server(answers(frame)) as url:
        with connect(url, timeout=60) as server:
            allowed = server.call("unsafe")
        with connect(url, timeout=60, max_values=500_000) as server:
            refused = server.call("unsafe")

    assert allowed.data == result["structuredContent"]
    assert refused.error is not None
    assert refused.error.code == "TOO_LARGE"


def test_a_result_with_too_many_blocks_is_too_large() -> None:
    result = json.dumps({"content": [BLOCK] * 10_001}).encode()
    frame = b'{"jsonrpc":"2.0","id":%d,"result":' + result + b"}"

    with http_server(answers(frame)) as url, connect(url, timeout=60) as server:
        reply = server.call("unsafe")

    assert reply.error is not None
    assert reply.error.code == "TOO_LARGE"


@pytest.mark.parametrize("transport", ["http", "rest"])
def test_a_large_reply_is_read_as_a_small_one(transport: Any) -> None:
    """Large replies are decoded and read on a thread."""
    data = {"rows": [{"n": number, "é": "☃"} for number in range(20_000)]}
    result = {"content": [BLOCK], "structuredContent": data}
    frame = b'{"jsonrpc":"2.0","id":%d,"result":' + json.dumps(result).encode() + b"}"

    def answer(server: Faulty, asked: dict[str, Any]) -> None:
        server.send_body(200, frame % asked["id"], "application/json")

    class Handler(faulty(answer)):  # type: ignore[misc] # a class that is made for this test
        def do_POST(self) -> None:  # noqa: N802 -- the name that http.server calls
            if transport == "http":
                super().do_POST()
                return
            self.rfile.read(int(self.headers["content-length"]))
            self.send_body(200, json.dumps(data).encode(), "application/json")

    with (
        http_server(Handler) as url,
        connect(url, timeout=60, transport=transport) as server,
    ):
        reply = server.call("unsafe")

    assert reply.data == data


def test_a_text_with_too_many_values_stays_a_text() -> None:
    text = "[" + MANY.decode() + "]"

    reply = read({"content": [{"type": "text", "text": text}]})

    assert reply.ok
    assert not reply.has_data
    assert reply.content[0].text == text  # type: ignore[union-attr]  # it is the only block


def test_read_refuses_text_with_too_many_values_and_lint_does_not_check_it() -> None:
    text = b'{"content":[],"structuredContent":{"a":[' + MANY + b"]}}"

    reply, findings = read(text), validate(text)

    assert reply.error is not None
    assert reply.error.code == "TOO_LARGE"
    assert [each.rule for each in findings] == ["AB603"]
    assert read(text, max_values=3_000_000).ok


def test_read_refuses_too_many_blocks_and_lint_does_not_check_them() -> None:
    result = {"content": [None] * 10_001}

    reply, findings = read(result), validate(result)

    assert reply.error is not None
    assert reply.error.code == "TOO_LARGE"
    assert [each.rule for each in findings] == ["AB603"]


def lists(pages: list[str], entry: Any, cursor: str = "more") -> Any:
    """A server whose list of tools has one entry on each page, and no end."""

    class Handler(answers(b"")):  # type: ignore[misc] # a class that is made for this test
        def send_result(self, asked: dict[str, Any], result: Any) -> None:
            if asked["method"] == "tools/list":
                pages.append(cursor)
                tool = {**entry, "name": f"t{len(pages)}"}
                result = {"tools": [tool], "nextCursor": f"{cursor}{len(pages)}"}
            super().send_result(asked, result)

    return Handler


def test_a_list_without_an_end_stops_at_a_number_of_bytes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pages: list[str] = []
    handler = lists(pages, {"description": "x" * 2_000_000})

    with http_server(handler) as url, connect(url, timeout=60) as server:
        tools = server.tools()

    assert 8 <= len(pages) <= 10
    assert len(tools) == len(pages)
    assert "tools/list never ends" in caplog.text


def test_a_prompt_with_too_many_messages_is_an_error() -> None:
    message = {"role": "user", "content": BLOCK}

    class Handler(answers(b"")):  # type: ignore[misc] # a class that is made for this test
        def do_POST(self) -> None:  # noqa: N802 -- the name that http.server calls
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if asked["method"] == "initialize":
                self.sessions.append("s")
                facts = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
                self.send_result(asked, facts)
            elif asked["method"] == "prompts/get":
                self.send_result(asked, {"messages": [message] * 10_001})
            else:
                self.send_body(202 if "id" not in asked else 400)

    with (
        http_server(Handler) as url,
        connect(url, timeout=60) as server,
        pytest.raises(ToolError, match="10001 messages"),
    ):
        server.prompt("long")


def test_a_message_that_is_too_large_fails_its_own_call_alone(tmp_path: Path) -> None:
    async def call() -> list[Any]:
        async with connect(flooding("too large"), timeout=60) as server:
            calls = [server.call("first"), server.call("second")]
            return [*await asyncio.gather(*calls), await server.call("third")]

    first, second, third = asyncio.run(call())

    assert first.error.code == "TOO_LARGE"
    assert second.ok, second.error
    assert third.for_model() == "first second third"


def test_a_time_out_holds_while_a_large_reply_is_read() -> None:
    """The time-out counts from the first byte to the finished reply."""
    result = json.dumps({"content": [], "structuredContent": {"a": [0] * 300_000}}).encode()
    frame = b'{"jsonrpc":"2.0","id":%d,"result":' + result + b"}"

    def end_time(direction: str, received: bytes) -> None:
        if direction == "received" and len(received) > len(result):
            advance_clock(120)

    async def call(url: str) -> Any:
        async with connect(url, timeout=60, tap=end_time) as server:
            return await server.call("unsafe")

    with http_server(answers(frame)) as url:
        reply = asyncio.run(call(url))

    assert reply.error.code == "TIMED_OUT"
