"""Whether a return value is a failure, a finished reply or data: the same for tools and `wrap`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import pydantic
import pytest
from tests.calls.one_tool import app_returning

from answerback import App, Text, validate, wrap
from answerback.options import Values
from answerback.resilience import Retry

BAD_RESULT: dict[str, Any] = {"content": [{"type": "text", "text": "gone"}], "isError": True}
GOOD_RESULT: dict[str, Any] = {"content": [{"type": "text", "text": "here"}], "isError": False}
BAD_ENVELOPE: dict[str, Any] = {"success": False, "error": {"code": "GONE", "message": "gone"}}
GOOD_ENVELOPE: dict[str, Any] = {"success": True, "data": {"x": 1}}


class ResultDict(TypedDict, total=False):
    content: list[dict[str, Any]]
    isError: bool
    structuredContent: dict[str, Any]


@dataclass
class ResultData:
    content: list[dict[str, Any]]
    isError: bool = False  # noqa: N815 -- the member of MCP


class ResultModel(pydantic.BaseModel):
    content: list[dict[str, Any]]
    is_error: bool = pydantic.Field(False, alias="isError")


class ResultStruct(msgspec.Struct):
    content: list[Text]
    is_error: bool = msgspec.field(default=False, name="isError")


class EnvelopeDict(TypedDict, total=False):
    success: bool
    timestamp: str
    content: list[dict[str, Any]]
    data: dict[str, Any]
    error: dict[str, Any]


@dataclass
class EnvelopeData:
    success: bool
    data: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class EnvelopeModel(pydantic.BaseModel):
    success: bool
    data: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


def sent_by(app: App, dialect: Any = "mcp") -> Any:
    return app.write(asyncio.run(app.call("tool")), dialect)


def errors_in(sent: Any, dialect: Any = "mcp") -> list[str]:
    return [each.rule for each in validate(sent, dialect) if each.severity == "error"]


RESULTS: list[tuple[Any, Any]] = [
    (ResultDict, lambda found: found),
    (ResultData, lambda found: ResultData(**found)),
    (ResultModel, lambda found: ResultModel(**found)),
    (
        ResultStruct,
        lambda found: ResultStruct([Text(found["content"][0]["text"])], found["isError"]),
    ),
]
ENVELOPES: list[tuple[Any, Any]] = [
    (EnvelopeDict, lambda found: found),
    (EnvelopeData, lambda found: EnvelopeData(**found)),
    (EnvelopeModel, lambda found: EnvelopeModel(**found)),
]
FAILURES = [(cls, make(BAD_RESULT)) for cls, make in RESULTS]
FAILURES += [(cls, make(BAD_ENVELOPE)) for cls, make in ENVELOPES]


@pytest.mark.parametrize("declared", ["declared", "optional", "in a union", "untyped"])
@pytest.mark.parametrize(("cls", "value"), FAILURES)
def test_a_failure_of_a_class_with_the_form_of_a_reply_is_a_failure_in_every_dialect(
    cls: Any, value: Any, declared: str
) -> None:
    annotations = {"declared": cls, "optional": cls | None, "in a union": cls | list[int]}
    app = app_returning(value, annotations.get(declared, Any))

    reply = asyncio.run(app.call("tool"))

    assert reply.error is not None
    assert reply.error.message == "gone"
    assert app.write(reply, "mcp")["isError"] is True
    assert app.write(reply, "envelope")["success"] is False
    assert app.write(reply, "rest") == {"error": "gone"}
    assert app.tools["tool"].output_schema is None


@pytest.mark.parametrize(("cls", "make"), RESULTS)
def test_a_success_of_a_class_with_the_form_of_a_result_is_sent_as_the_result(
    cls: Any, make: Any
) -> None:
    assert sent_by(app_returning(make(GOOD_RESULT), cls)) == GOOD_RESULT


@pytest.mark.parametrize(("cls", "make"), ENVELOPES)
def test_a_success_of_a_class_with_the_form_of_an_envelope_sends_its_data(
    cls: Any, make: Any
) -> None:
    assert sent_by(app_returning(make(GOOD_ENVELOPE), cls))["structuredContent"] == {"x": 1}


@dataclass
class Weather:
    celsius: float


class WeatherReply(TypedDict):
    success: bool
    data: Weather


T = TypeVar("T")


class Page(pydantic.BaseModel, Generic[T]):
    success: bool
    data: T
    error: str | None = None


@pytest.mark.parametrize("annotation", [WeatherReply, Page[Weather]])
def test_the_data_of_a_declared_envelope_has_its_type_as_the_output_schema(annotation: Any) -> None:
    fine = app_returning({"success": True, "data": {"celsius": 3.5}}, annotation)
    wrong = app_returning({"success": True, "data": {"celsius": "cold"}}, annotation)

    schema = fine.tools["tool"].output_schema

    assert schema is not None
    assert schema["properties"].keys() == {"celsius"}
    assert sent_by(fine)["structuredContent"] == {"celsius": 3.5}
    assert sent_by(wrong)["isError"] is True


@dataclass
class Upload:
    success: bool
    error: str | None = None
    files: list[str] = field(default_factory=list)


def test_a_class_with_a_flag_and_own_members_is_data_unless_it_says_that_it_failed() -> None:
    done = app_returning(Upload(True, files=["a"]), Upload)
    failed = app_returning(Upload(False, "the disk is full", ["a"]), Upload)

    schema = done.tools["tool"].output_schema

    assert schema is not None
    assert schema["properties"].keys() == {"success", "error", "files"}
    assert sent_by(done)["structuredContent"]["files"] == ["a"]
    assert sent_by(failed)["content"] == [{"type": "text", "text": "the disk is full"}]
    assert sent_by(failed)["isError"] is True


class Problem(TypedDict):
    status: int
    title: str
    detail: str


def test_an_error_that_the_declared_type_describes_is_data() -> None:
    problem: Problem = {"status": 404, "title": "Not Found", "detail": "no such city"}

    assert sent_by(app_returning(problem, Problem))["structuredContent"] == problem
    assert sent_by(app_returning(problem))["isError"] is True


class Created(TypedDict):
    created: int


def test_a_result_built_by_hand_is_sent_although_the_type_declares_its_data() -> None:
    made = {
        "content": [{"type": "text", "text": '{"created": 1}'}],
        "structuredContent": {"created": 1},
    }
    app = app_returning(made, Created)

    assert sent_by(app)["structuredContent"] == {"created": 1}
    assert app.tools["tool"].output_schema is not None
    assert sent_by(app_returning(BAD_RESULT, Created))["isError"] is True


class City(TypedDict, total=False):
    name: str
    people: int


@pytest.mark.parametrize("annotation", [City, dict[str, str], int, str | None, list[int]])
def test_an_error_that_the_type_does_not_declare_is_a_failure(annotation: Any) -> None:
    sent = sent_by(app_returning({"error": "no such city"}, annotation))

    assert (sent["isError"], sent["content"][0]["text"]) == (True, "no such city")


@pytest.mark.parametrize("contract", ["standard", "envelope", "direct"])
def test_an_envelope_whose_data_is_a_list_is_sent_by_a_tool_that_returns_a_dict(
    contract: str,
) -> None:
    app = app_returning({"success": True, "data": [1, 2]}, dict, contract=contract)

    assert sent_by(app)["structuredContent"] == {"result": [1, 2]}
    assert errors_in(sent_by(app, "envelope"), "envelope") == []


FAILED = [
    {"ok": False, "error": "nope"},
    {"ok": False, "error": "nope", "rows": []},
    {"success": 0, "message": "nope"},
    {"success": None, "message": "nope"},
    {"success": True, "error": "nope"},
    {"error": "nope", "rows": []},
    {"errors": [{"message": "nope"}]},
    {"status": "error", "message": "nope"},
    {"result": {"success": False, "error": "nope"}},
    {"content": [{"type": "text", "text": '{"success": false, "error": "nope"}'}]},
    {"content": [], "structuredContent": {"success": False, "error": "nope"}},
    '{"success": false, "error": {"code": "E", "message": "nope"}}',
    '```json\n{"error": "nope"}\n```',
    json.dumps({"content": [{"type": "text", "text": "nope"}], "isError": True}),
    EnvelopeData(False, error={"message": "nope"}),
]


@pytest.mark.parametrize("value", FAILED, ids=str)
def test_a_failure_is_one_for_a_tool_for_a_wrapped_tool_and_for_wrap(value: Any) -> None:
    def tool() -> Any:
        return value

    plain, wrapped = App("test"), App("test")
    plain.add_tool(tool)
    wrapped.add_tool(wrap(tool))

    made = asyncio.run(wrap(tool)())

    assert (made["success"], made["error"]["message"]) == (False, "nope")
    assert errors_in(made, "envelope") == []
    for app in (plain, wrapped):
        sent = sent_by(app)
        assert (sent["isError"], sent["content"][0]["text"]) == (True, "nope")
        assert errors_in(sent) == []


DATA = [
    {"error": "high", "rows": [1]},
    {"success": 0, "failed": 3},
    {"success": True, "rows": [1]},
    {"message": "hello"},
    {"status": "running"},
    '{"celsius": 3}',
    "no such city",
    Upload(True, files=["a"]),
    [{"id": 1, "error": "one of many"}],
]


@pytest.mark.parametrize("value", DATA, ids=str)
def test_data_is_data_for_a_tool_for_a_wrapped_tool_and_for_wrap(value: Any) -> None:
    def tool() -> Any:
        return value

    plain, wrapped = App("test"), App("test")
    plain.add_tool(tool)
    wrapped.add_tool(wrap(tool))

    assert asyncio.run(wrap(tool)())["success"] is True
    assert sent_by(plain)["isError"] is False
    assert sent_by(wrapped) == sent_by(plain)


def test_a_success_with_a_message_is_sent_as_wrap_completes_it() -> None:
    value = {"success": True, "message": "Instance started"}
    app = app_returning(value, contract="envelope")

    sent, made = sent_by(app, "envelope"), asyncio.run(wrap(lambda: value)())

    assert sent["content"] == made["content"] == [{"type": "text", "text": "Instance started"}]
    assert "data" not in sent


def test_a_decorator_around_a_wrapped_function_still_runs() -> None:
    import functools

    wrapped = wrap(lambda: 5)
    runs: list[int] = []

    @functools.wraps(wrapped)
    async def counted() -> Any:
        runs.append(1)
        return await wrapped()

    app = App("test")
    app.add_tool(counted, name="tool")

    assert sent_by(app)["structuredContent"] == {"result": 5}
    assert runs == [1]


@pytest.mark.parametrize("value", [BAD_RESULT, BAD_ENVELOPE, '{"error": "gone"}', {"ok": False}])
def test_returns_value_sends_each_of_them_as_data(value: Any) -> None:
    app = app_returning(value, values=Values(returns="value"))

    assert asyncio.run(app.call("tool")).data == value


def test_a_declared_envelope_is_data_with_returns_value() -> None:
    app = app_returning(BAD_ENVELOPE, EnvelopeDict, values=Values(returns="value"))

    assert asyncio.run(app.call("tool")).data == BAD_ENVELOPE
    assert app.tools["tool"].output_schema is not None


@pytest.mark.parametrize(
    "failed",
    [
        {"ok": False, "error": {"code": "UNAVAILABLE", "message": "busy"}},
        '{"success": false, "error": {"code": "UNAVAILABLE", "message": "busy"}}',
        EnvelopeData(False, error={"code": "UNAVAILABLE", "message": "busy"}),
    ],
    ids=str,
)
def test_a_retry_sees_the_same_failures(failed: Any) -> None:
    results = [failed, failed, "done"]
    app = App("test")
    app.add_tool(
        lambda: results.pop(0), name="tool", retry=Retry(wait=lambda _: 0.0), idempotent=True
    )

    assert sent_by(app)["isError"] is False
    assert results == []


def test_the_data_of_a_declared_envelope_is_not_an_envelope_itself() -> None:
    value = {"success": True, "data": {"status": "running", "state": "up"}}

    assert asyncio.run(app_returning(value, EnvelopeDict).call("tool")).data == value["data"]


def test_content_with_a_timestamp_is_an_envelope_for_a_tool_and_for_wrap() -> None:
    when = "2026-01-31T12:00:00Z"
    value = {"content": [{"type": "text", "text": "here"}], "timestamp": when}

    sent = sent_by(app_returning(value, Any), "envelope")
    wrapped = asyncio.run(wrap(lambda: value)())

    assert sent == wrapped == {"success": True, **value}
