"""A tool that declares no type and returns a finished reply: the reply is sent, not nested."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent
from tests.calls.one_tool import answer, app_returning
from tests.serving import handlers_of

from answerback import App, NotFound, Text, success, validate, wrap
from answerback.calls.call import Call
from answerback.options import Values

CONTRACTS = ["standard", "aligned", "envelope", "apps", "direct"]


LEGACY = '{"success": false, "error": {"code": "CITY_UNKNOWN", "message": "no such city"}}'
FAILURES: list[tuple[Any, str, str]] = [
    ({"isError": True, "content": [{"type": "text", "text": "gone"}]}, "UNKNOWN_ERROR", "gone"),
    ({"isError": True, "content": [Text("gone")]}, "UNKNOWN_ERROR", "gone"),
    ({"isError": True, "message": "gone"}, "UNKNOWN_ERROR", "gone"),
    ({"isError": True, "content": "gone"}, "UNKNOWN_ERROR", "gone"),
    ({"content": [{"type": "text", "text": LEGACY}]}, "CITY_UNKNOWN", "no such city"),
    (
        {"content": [{"type": "text", "text": LEGACY}], "isError": True},
        "CITY_UNKNOWN",
        "no such city",
    ),
    (
        {
            "success": False,
            "timestamp": "2025-05-03T14:30:00Z",
            "content": [{"type": "text", "text": "Error: gone"}],
            "error": {"code": "INSTANCE_GONE", "message": "gone"},
        },
        "INSTANCE_GONE",
        "gone",
    ),
    ({"success": False, "error": {"code": "A", "message": "gone"}}, "A", "gone"),
    ({"success": False, "message": "gone"}, "UNKNOWN_ERROR", "gone"),
    ({"success": False, "error": {"message": "gone", "hint": 3}}, "UNKNOWN_ERROR", "gone"),
    (
        {"isError": True, "content": [{"type": "image"}], "message": "gone"},
        "UNKNOWN_ERROR",
        "gone",
    ),
    ({"error": "Location not found"}, "UNKNOWN_ERROR", "Location not found"),
    ({"error": {"message": "gone", "code": "A"}}, "A", "gone"),
    ({"error": {"detail": "gone"}}, "UNKNOWN_ERROR", "gone"),
]


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(("value", "code", "message"), FAILURES)
def test_a_failure_that_a_tool_builds_by_hand_is_sent_as_a_failure(
    value: Any, code: str, message: str, contract: str
) -> None:
    app = app_returning(value, contract=contract)

    reply = asyncio.run(app.call("tool"))

    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == (code, message)
    assert app.write(reply, "mcp")["isError"] is True
    assert app.write(reply, "envelope")["success"] is False
    assert len(reply.content) == 1
    assert [each for each in validate(reply) if each.severity == "error"] == []


@pytest.mark.parametrize("annotation", [Any, object, dict, dict[str, Any]])
def test_an_annotation_that_declares_nothing_leaves_a_failure_a_failure(annotation: Any) -> None:
    reply = answer({"error": "Location not found"}, annotation)

    assert reply.error is not None


NOT_FAILURES: list[Any] = [
    {"error": None},
    {"error": ""},
    {"error": "  "},
    {"error": {}},
    {"error": []},
    {"error": 0},
    {"error": "high", "rows": [1]},
    {"error": None, "rows": [1]},
    {"success": True, "data": {"a": 1}, "count": 3},
    {"success": True, "rows": [1]},
    {"success": 0, "failed": 3},
    {"success": None, "status": "pending"},
    {"isError": False},
    {"content": "words"},
    {"content": ["words"]},
    {"content": [{"text": "no type"}]},
    {"content": [{"type": "text", "text": "a"}], "pages": 3},
    {"content": []},
]


@pytest.mark.parametrize("value", NOT_FAILURES)
def test_data_that_may_be_data_is_sent_as_data(value: Any) -> None:
    reply = answer(value)

    assert reply.data == value
    assert reply.to("mcp")["structuredContent"] == value
    assert reply.to("mcp")["isError"] is False


@pytest.mark.parametrize("flags", [{}, {"isError": False}, {"success": True}])
def test_a_malformed_block_of_a_finished_reply_is_sent_as_text(flags: Any) -> None:
    reply = answer({"content": [{"type": "image"}, {"type": "text", "text": "a"}], **flags})

    assert [block.text for block in reply.content] == ['{"type":"image"}', "a"]
    assert not reply.has_data


def test_returns_value_sends_a_finished_reply_as_data() -> None:
    of_tool = answer({"error": "high"}, values=Values(returns="value"))
    app = App("test", values=Values(returns="value"))
    app.add_tool(lambda: {"error": "high"}, name="tool")

    of_app = asyncio.run(app.call("tool"))

    assert of_tool.data == of_app.data == {"error": "high"}


def test_an_mcp_result_is_sent_with_its_content_and_its_data() -> None:
    blocks = [
        {"type": "text", "text": "Oslo is cold"},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
    ]
    value = {
        "content": blocks,
        "structuredContent": {"celsius": -3},
        "isError": False,
        "_meta": {"example/trace": "t1"},
    }

    sent = answer(value).to("mcp")

    assert sent["content"] == [*blocks, {"type": "text", "text": '{"celsius":-3}'}]
    assert sent["structuredContent"] == {"celsius": -3}
    assert sent["_meta"] == {"example/trace": "t1"}


def test_the_json_text_of_an_mcp_result_is_not_sent_twice() -> None:
    value = {
        "content": [{"type": "text", "text": '{\n  "celsius": -3\n}'}],
        "structuredContent": {"celsius": -3},
    }

    assert answer(value).to("mcp")["content"] == [{"type": "text", "text": '{"celsius":-3}'}]


POINT = {"x": 1, "y": [2]}
OWN_TEXT = [
    {"content": [{"type": "text", "text": "here"}], "structuredContent": POINT},
    {"success": True, "content": [{"type": "text", "text": "here"}], "data": POINT},
    success("here", data=POINT),
]


@pytest.mark.parametrize("contract", ["standard", "aligned", "direct", "apps"])
@pytest.mark.parametrize("value", OWN_TEXT)
def test_an_own_text_is_sent_alone_if_the_tool_is_not_structured(value: Any, contract: str) -> None:
    app = App("test", contract=contract)
    app.add_tool(lambda: value, name="find", values=Values(structured=False))

    sent = app.write(asyncio.run(app.call("find")), "mcp")

    assert sent == {"content": [{"type": "text", "text": "here"}], "isError": False}


@pytest.mark.parametrize("value", OWN_TEXT)
def test_an_own_text_is_followed_by_the_json_under_the_standard_contract(value: Any) -> None:
    app = App("test")
    app.add_tool(lambda: value, name="find")

    sent = app.write(asyncio.run(app.call("find")), "mcp")

    assert [each["text"] for each in sent["content"]] == ["here", '{"x":1,"y":[2]}']
    assert sent["structuredContent"] == POINT


JSON_TEXTS = ['{"x":1,"y":[2]}', '{"x": 1, "y": [2]}', '{\n  "y": [2],\n  "x": 1\n}']


@pytest.mark.parametrize("text", JSON_TEXTS)
@pytest.mark.parametrize("structured", [True, False])
def test_a_text_that_is_the_json_of_the_data_is_sent_once(text: str, structured: bool) -> None:
    app = App("test")
    block = {"type": "text", "text": text}
    app.add_tool(
        lambda: success(text, data=POINT), name="success", values=Values(structured=structured)
    )
    app.add_tool(
        lambda: {"content": [block], "structuredContent": POINT},
        name="result",
        values=Values(structured=structured),
    )

    for name in ("success", "result"):
        sent = app.write(asyncio.run(app.call(name)), "mcp")

        assert [json.loads(each["text"]) for each in sent["content"]] == [POINT]
        assert ("structuredContent" in sent) == structured


def test_an_envelope_without_content_is_completed() -> None:
    app = app_returning({"success": True, "data": {"id": 1}}, contract="envelope")

    sent = app.write(asyncio.run(app.call("tool")))

    assert (sent["success"], sent["data"]) == (True, {"id": 1})
    assert sent["content"] == [{"type": "text", "text": "ID: 1"}]


def test_members_that_an_envelope_has_no_place_for_are_kept_in_meta() -> None:
    value = {
        "success": True,
        "content": [{"type": "text", "text": "done"}],
        "data": {"id": 1},
        "traceId": "t1",
    }

    reply = answer(value)

    assert reply.data == {"id": 1}
    assert reply.meta == {"traceId": "t1"}


def test_members_beside_an_error_are_kept_in_its_details() -> None:
    reply = answer({"success": False, "message": "gone", "available": ["a"], "data": {"b": 1}})

    assert reply.error.details == {"available": ["a"], "data": {"b": 1}}


def test_a_finished_reply_passes_the_checks_of_every_reply(
    caplog: pytest.LogCaptureFixture,
) -> None:
    endless = answer({"success": True, "data": {"x": float("nan")}, "message": "m"})
    masked = answer({"success": False, "error": RuntimeError("password=hunter2")})

    assert endless.error.code == "INVALID_OUTPUT"
    assert masked.error.message.startswith("Unknown error (reference ")
    assert masked.error.details["reference"] in caplog.text


def test_a_finished_reply_is_logged_once_for_each_tool(caplog: pytest.LogCaptureFixture) -> None:
    app = app_returning({"error": "gone"})

    with caplog.at_level(logging.INFO, "answerback"):
        asyncio.run(app.call("tool"))
        asyncio.run(app.call("tool"))

    assert [record.getMessage() for record in caplog.records] == [
        "tool 'tool' returned a failure (it is an envelope with an error), which is sent as the "
        "reply and not as data; to send it as data, write values=Values(returns='value')"
    ]


def count() -> int:
    return 5


def nothing() -> None:
    return None


def place() -> dict[str, int]:
    return {"x": 1}


def missing() -> int:
    raise NotFound("no such city", code="CITY_UNKNOWN")


@pytest.mark.parametrize("annotation", [Any, CallToolResult])
def test_a_result_of_the_sdk_is_sent_as_that_result(annotation: Any) -> None:
    blocks: list[Any] = [TextContent(type="text", text="gone")]

    failed = answer(CallToolResult(content=blocks, is_error=True), annotation)
    told = answer(CallToolResult(content=blocks, structured_content={"a": 1}), annotation)

    assert failed.error.message == "gone"
    assert (told.data, told.content[0]) == ({"a": 1}, Text("gone"))


@pytest.mark.parametrize("contract", ["standard", "envelope", "aligned"])
def test_a_wrapped_function_is_a_tool_that_fails_as_the_function_does(
    contract: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("test", contract=contract)
    app.add_tool(wrap(missing))
    caplog.set_level(logging.INFO, "answerback")

    reply = asyncio.run(app.call("missing"))

    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == ("CITY_UNKNOWN", "no such city")
    assert caplog.records == []


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("fn", [count, nothing, place])
def test_a_wrapped_function_sends_the_data_that_the_function_sends(fn: Any, contract: str) -> None:
    plain, wrapped = App("test", contract=contract), App("test", contract=contract)
    plain.add_tool(fn)
    wrapped.add_tool(wrap(fn))

    sent, expected = (
        app.write(asyncio.run(app.call(fn.__name__)), "mcp") for app in (wrapped, plain)
    )

    assert sent["structuredContent"] == expected["structuredContent"]


def test_a_resource_may_hold_an_object_that_looks_like_a_reply() -> None:
    app = App("test")

    @app.resource("config://app")
    def config() -> dict[str, Any]:
        return {"error": "none of them"}

    outcome: Any = asyncio.run(handlers_of(app).resources(Call("config://app")))

    assert outcome.data == {"error": "none of them"}


@pytest.mark.parametrize(
    "value",
    [
        {"error": {"message": ValueError("a secret")}},
        {"success": False, "error": {"message": ValueError("a secret"), "code": "NOT_FOUND"}},
        {"error": {"message": None}},
        {"error": {"message": 42}},
        {"success": False},
        {"isError": True, "content": []},
    ],
    ids=str,
)
def test_a_failure_without_a_text_has_a_reference_that_is_in_the_log(
    value: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    app = App("test")

    @app.tool
    def fail():  # type: ignore[no-untyped-def]  # a declared type would make it data
        return value

    reply = asyncio.run(app.call("fail"))
    error = reply.error

    assert app.write(reply, "mcp")["isError"] is True
    assert app.write(reply, "envelope")["success"] is False
    assert error is not None
    assert error.details is not None
    assert error.message.endswith(f"(reference {error.details['reference']})")
    assert "a secret" not in error.message
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert error.details["reference"] in record.getMessage()
    assert "'fail'" in record.getMessage()
