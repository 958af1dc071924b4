"""wrap: envelopes from any return value and any exception."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import inf, nan
from typing import Any

import pydantic
import pytest
from tests.calls import one_tool

from answerback import App, wrap
from answerback.core.content import Embedded, Image, Text
from answerback.core.reply import failure, success
from answerback.dialects import envelope
from answerback.errors import NotFound, ToolError
from answerback.options import Values


class Opaque:
    """A value that has no JSON form."""


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def answer(result: Any) -> dict[str, Any]:
    found = asyncio.run(wrap(lambda: result)())
    check(found)
    return found


def raised(error: BaseException) -> dict[str, Any]:
    def fail() -> None:
        raise error

    found = asyncio.run(wrap(fail)())
    check(found)
    return found


def check(found: dict[str, Any]) -> None:
    """Assert the rules of the envelope about its members, its content and its error."""
    assert isinstance(found["success"], bool)
    assert datetime.fromisoformat(found["timestamp"]).tzinfo is not None
    assert found["content"] != []
    assert all(isinstance(item["type"], str) for item in found["content"])
    assert isinstance(found.get("data", {}), dict)
    assert found["success"] == ("error" not in found)
    if "error" in found:
        assert isinstance(found["error"]["code"], str)
        assert isinstance(found["error"]["message"], str)
        assert isinstance(found["error"].get("details", {}), dict)
    envelope.read(found)


def texts(found: dict[str, Any]) -> list[Any]:
    return [item.get("text") for item in found["content"]]


def test_the_wrapped_function_takes_the_same_arguments() -> None:
    def add(x: int, *, y: int) -> int:
        """Add two numbers."""
        return x + y

    wrapped = wrap(add)

    assert asyncio.run(wrapped(7, y=3))["data"] == {"result": 10}
    assert (wrapped.__name__, wrapped.__doc__) == ("add", "Add two numbers.")
    refused = wrapped()  # type: ignore[call-arg]  # a wrong call also returns an envelope
    assert asyncio.run(refused)["error"]["code"] == "TOOL_EXECUTION_ERROR"


def test_an_async_function_is_awaited() -> None:
    async def add(x: int, y: int) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"sum": x + y}

    assert asyncio.run(wrap(add)(7, 3))["data"] == {"sum": 10}


def test_seed_000_a_result_with_content_is_not_changed() -> None:
    made = {
        "success": True,
        "timestamp": "2025-05-03T14:30:00Z",
        "content": [
            {"type": "text", "text": "See:", "mark": 1},
            {"type": "image", "url": "https://example.com/a.png", "altText": "a"},
            {"type": "chart", "rows": [1]},
        ],
        "data": {"id": 1},
        "traceId": "t-1",
    }

    assert answer(made) == made


@pytest.mark.parametrize(
    ("found", "success", "message"),
    [
        ({"content": [{"type": "text", "text": "hi"}]}, True, None),
        ({"content": [{"type": "text", "text": "Error: no"}], "success": False}, False, "no"),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, False, "no"),
        ({"content": [], "error": "oops"}, False, "oops"),
        ({"content": [], "success": True, "error": None, "timestamp": "soon"}, True, None),
    ],
)
def test_missing_members_of_an_envelope_are_added(
    found: Any, success: bool, message: str | None
) -> None:
    completed = answer(found)

    assert completed["success"] is success
    assert completed.get("error", {}).get("message") == message


def test_malformed_content_is_repaired() -> None:
    items = [
        {"text": "no type"},
        "a string",
        {"type": "image", "data": "cG5n", "mimeType": "image/png"},
        {"type": "image", "url": "a.png"},
        {"type": "resource"},
        Text("a block"),
        5,
    ]

    found = answer({"content": items})["content"]

    kinds = ["text", "text", "image", "image", "text", "text", "text"]
    assert [item["type"] for item in found] == kinds
    assert found[2]["url"] == "data:image/png;base64,cG5n"
    assert found[3]["altText"] == "Image"
    assert found[4]["text"] == '{"type":"resource"}'


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"success": True, "data": {"a": [1]}}, '{\n  "a": [\n    1\n  ]\n}'),
        ({"success": True, "data": {}, "message": "made"}, "{}"),
        ({"success": True, "data": 0, "message": "made"}, "made"),
        ({"success": True, "message": "made"}, "made"),
        ({"success": True}, "Operation completed successfully"),
    ],
)
def test_seed_000_a_success_without_content_gets_its_text(result: Any, text: str) -> None:
    assert texts(answer(result)) == [text]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"success": False, "error": {"message": "bad"}}, "bad"),
        ({"success": False, "error": {"code": "GONE"}}, "Unknown error"),
        ({"success": False, "error": "bad"}, "bad"),
        ({"success": False, "message": "Instance not found"}, "Instance not found"),
        ({"success": False}, "Unknown error"),
        ({"success": True, "error": {"message": "not so"}}, "not so"),
    ],
)
def test_seed_000_an_error_without_content_gets_its_text(result: Any, message: str) -> None:
    found = answer(result)

    assert texts(found) == [f"Error: {message}"]
    assert found["error"]["message"] == message


@pytest.mark.parametrize(
    ("result", "data", "text"),
    [
        (10, {"result": 10}, "10"),
        ("hi", {"result": "hi"}, "hi"),
        ([], {"result": []}, "None found"),
        ({"city": "Oslo"}, {"city": "Oslo"}, "City: Oslo"),
        ({"success": 3, "failed": 1}, {"success": 3, "failed": 1}, "Success: 3\nFailed: 1"),
        (success("Ten.", 10), {"result": 10}, "Ten."),
        (datetime(2025, 5, 3), {"result": "2025-05-03T00:00:00"}, "2025-05-03T00:00:00"),
    ],
)
def test_any_other_value_is_the_data_of_a_success(result: Any, data: Any, text: str) -> None:
    found = answer(result)

    assert found["success"] is True
    assert found["data"] == data
    assert texts(found) == [text]


@pytest.mark.parametrize("result", [None, success(), success(data=None)])
def test_none_is_a_success_without_data(result: Any) -> None:
    found = answer(result)

    assert texts(found) == ["Operation completed successfully"]
    assert "data" not in found


@pytest.mark.parametrize(
    "result", [Image(b"png", "image/png"), [Text("a"), Embedded("a:b", blob=b"b")]]
)
def test_blocks_are_content(result: Any) -> None:
    found = answer(result)

    assert found["content"][-1]["type"] in ("image", "resource")
    assert "data" not in found


def test_a_tool_error_keeps_its_message_code_and_details() -> None:
    found = raised(NotFound("no such city", code="CITY_UNKNOWN", details={"city": "Atlantis"}))

    assert texts(found) == ["Error: no such city"]
    assert found["error"]["code"] == "CITY_UNKNOWN"
    assert found["error"]["details"] == {"city": "Atlantis"}


@pytest.mark.parametrize(
    "error",
    [
        ToolError("no", details=Opaque()),
        ToolError("no", details=[1]),
        ToolError("no\ud800"),
        ToolError("no", code=["no"]),  # type: ignore[arg-type]  # authors might
    ],
)
def test_a_tool_error_that_cannot_be_sent_whole_is_still_an_error(error: ToolError) -> None:
    assert raised(error)["error"]["message"].startswith("no")


def test_an_exception_as_the_message_of_a_tool_error_is_logged_and_not_shown() -> None:
    found = raised(ToolError(ValueError("hunter2")))  # type: ignore[arg-type]  # authors do

    assert found["error"]["message"].startswith("Unknown error (reference ")
    assert "hunter2" not in str(found)


@pytest.mark.parametrize("error", [ValueError("password=hunter2"), SystemExit("password=hunter2")])
def test_seed_000_best_practice_4_an_exception_is_an_error_and_the_log_has_its_text(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    found = raised(error)

    reference = found["error"]["details"]["reference"]
    assert found["error"]["code"] == "TOOL_EXECUTION_ERROR"
    assert "hunter2" not in str(found)
    assert reference in found["content"][0]["text"]
    assert reference in caplog.text
    assert "hunter2" in caplog.text
    assert caplog.records[0].name == "answerback"


@pytest.mark.parametrize(
    "result",
    [
        float("nan"),
        Opaque(),
        CYCLE,
        "\ud800",
        {"success": True, "data": float("inf")},
        {"content": [{"type": "text", "text": "a", "x": Opaque()}]},
        {"success": False, "error": {"message": "a", "details": Opaque()}},
        success(data={"a": float("nan")}),
        success("a", meta={"a": Opaque()}),
        success(content=[Text("a", meta={"a": float("nan")})]),
        failure("a", details=Opaque()),
    ],
)
def test_a_value_that_json_cannot_express_is_an_error(
    result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    assert answer(result)["error"]["code"] == "INVALID_OUTPUT"


def test_the_log_has_the_reference_of_an_invalid_output(caplog: pytest.LogCaptureFixture) -> None:
    found = answer(Opaque())

    reference = found["error"]["details"]["reference"]
    assert found["error"]["message"].endswith(f"(reference {reference})")
    assert reference in caplog.text


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt])
def test_cancellation_and_keyboard_interrupt_are_not_caught(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    coroutine = wrap(fail)()

    with pytest.raises(error):
        coroutine.send(None)


FAILURES_000_39: list[tuple[dict[str, Any], str]] = [
    ({"error": "Location not found"}, "Location not found"),
    ({"error": {"code": "GONE", "message": "gone"}}, "gone"),
    ({"error": "gone", "rows": []}, "gone"),
    ({"ok": False, "error": "nope"}, "nope"),
    ({"ok": False}, "Unknown error"),
    ({"status": "error", "message": "nope"}, "nope"),
    ({"isError": True, "message": "nope"}, "nope"),
    ({"isError": True, "content": [{"type": "text", "text": "nope"}]}, "nope"),
]


@pytest.mark.parametrize(("result", "message"), FAILURES_000_39)
def test_seed_000_wrap_tells_no_failure_as_a_success(result: Any, message: str) -> None:
    found = answer(result)

    assert found["success"] is False
    assert found["error"]["message"] == message


@pytest.mark.parametrize("result", [{"error": None}, {"error": "", "rows": [1]}, {"ok": True}])
def test_wrap_tells_an_error_that_is_null_or_empty_as_a_success(result: Any) -> None:
    found = answer(result)

    assert found["success"] is True
    assert found["data"] == result


@pytest.mark.parametrize("status", ["error", "failed", "failure"])
def test_a_status_that_says_failed_is_an_error_only_with_a_message(status: str) -> None:
    alone = asyncio.run(wrap(lambda: {"status": status})())
    told = asyncio.run(wrap(lambda: {"status": status, "reason": "no disk"})())

    assert (alone["success"], alone["data"]) == (True, {"status": status})
    assert (told["success"], told["error"]["message"]) == (False, "no disk")


class Reading(pydantic.BaseModel):
    celsius: float


@dataclass
class Point:
    x: float


NOT_FINITE = [
    ([1.0, inf], {"result": [1.0, None]}),
    ({"a": {"b": nan}}, {"a": {"b": None}}),
    (Point(nan), {"x": None}),
    (Reading(celsius=nan), {"celsius": None}),
    (success("text", data={"a": -inf}), {"a": None}),
    ({"success": True, "data": {"a": nan}}, {"a": None}),
    ({"content": [Text("a")], "data": {"a": nan}}, {"a": None}),
]


@pytest.mark.parametrize(("result", "data"), NOT_FINITE)
def test_a_float_that_is_not_finite_is_null_if_wrap_is_told_so(result: Any, data: Any) -> None:
    found = asyncio.run(wrap(lambda: result, nan="null")())

    check(found)
    assert found["data"] == data
    assert "NaN" not in texts(found)[0]


def test_wrap_with_options_is_a_decorator() -> None:
    @wrap(nan="null")
    def means() -> list[float]:
        return [nan]

    assert asyncio.run(means())["data"] == {"result": [None]}


def test_a_number_that_is_null_is_a_result_without_data() -> None:
    found = asyncio.run(wrap(lambda: nan, nan="null")())

    assert found["success"]
    assert "data" not in found


@pytest.mark.parametrize(("result", "data"), NOT_FINITE)
def test_a_wrapped_function_has_the_setting_of_its_app(result: Any, data: Any) -> None:
    app = App("test", values=Values(nan="null"))

    @app.tool
    @wrap
    def mean() -> Any:
        return result

    reply = asyncio.run(app.call("mean"))

    assert reply.error is None
    assert (data if reply.data == data else {"result": reply.data}) == data


def test_the_setting_of_wrap_itself_comes_first() -> None:
    app = App("test", values=Values(nan="null"))

    @app.tool
    @wrap(nan="refuse")
    def mean() -> float:
        return nan

    reply = asyncio.run(app.call("mean"))

    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"


def test_wrap_refuses_another_setting_for_nan() -> None:
    with pytest.raises(TypeError, match="nan='zero' should be 'refuse' or 'null'"):
        wrap(lambda: 1, nan="zero")  # type: ignore[call-overload]  # the mistake of the test


def test_a_function_of_one_object_may_be_called_without_it() -> None:
    def count(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"count": len(arguments)}

    envelope = asyncio.run(wrap(count)())  # type: ignore[call-arg]  # as JavaScript allows

    assert envelope["data"] == {"count": 0}


def test_a_returned_tool_error_is_a_failure_envelope() -> None:
    envelope = asyncio.run(wrap(lambda: NotFound("gone"))())

    assert envelope["error"] == {"code": "NOT_FOUND", "message": "gone"}


@pytest.mark.parametrize(
    "stamp",
    [
        1769860800,
        1769860800.0,
        1769860800000,
        "2026-01-31T12:00:00Z",
        "Sat, 31 Jan 2026 12:00:00 GMT",
        datetime(2026, 1, 31, 12),
    ],
)
def test_a_timestamp_by_hand_in_any_usual_form_is_kept(stamp: object) -> None:
    by_hand = {"success": True, "timestamp": stamp, "data": {"a": 1}}

    found = asyncio.run(wrap(lambda: by_hand)())

    assert found["timestamp"] == "2026-01-31T12:00:00Z"
    assert one_tool.answer(by_hand).timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("stamp", [date(2026, 1, 31), "2026-01-31"])
def test_a_date_as_timestamp_is_the_start_of_its_day(stamp: object) -> None:
    found = asyncio.run(wrap(lambda: {"success": True, "timestamp": stamp})())

    assert found["timestamp"] == "2026-01-31T00:00:00Z"


@pytest.mark.parametrize("stamp", [True, nan, 1e300, "soon", "Sat, soon", "31/01/2026", b"", []])
def test_a_timestamp_that_cannot_be_read_is_the_present_time(stamp: object) -> None:
    before = datetime.now(UTC)

    found = asyncio.run(wrap(lambda: {"success": True, "timestamp": stamp})())

    assert before <= datetime.fromisoformat(found["timestamp"]) <= datetime.now(UTC)
