"""Rows of the seeds that an audit found to be missing in part: each has a test with its number."""

from __future__ import annotations

import asyncio
import enum
import json
import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from tests.seeds import quotes

from answerback import (
    App,
    Contract,
    Embedded,
    Image,
    Link,
    NotFound,
    Text,
    ToolError,
    audit,
    failure,
    read,
    success,
    validate,
    wrap,
)
from answerback.core.content import Block
from answerback.dialects.readable import render
from answerback.middleware.wsgi import ValidReplies
from answerback.records import Logging, Records
from answerback.rules.validation import repair
from answerback.testing import DisplayClient


def app_with(*functions: Any, contract: str | Contract = "standard") -> App:
    app = App("rows", contract=contract)
    for function in functions:
        app.add_tool(function)
    return app


def sent(app: App, name: str, dialect: Any = None) -> dict[str, Any]:
    """The JSON that the app sends for a call without arguments."""
    return app.write(asyncio.run(app.call(name)), dialect)


def test_seed_000_08_details_are_an_object() -> None:
    found = failure("no", code="GONE", details=["a"]).to("envelope")

    assert found["error"]["details"] == {"details": ["a"]}
    jsonschema.validate(found, quotes.SCHEMA_000)


def test_seed_000_21_create_success_response_gives_the_object() -> None:
    found = success(data={"instance": {"name": "web", "status": "running"}}).to("envelope")

    assert found["success"] is True
    assert found["data"] == {"instance": {"name": "web", "status": "running"}}
    assert found["content"] == [{"type": "text", "text": "Instance: web\nStatus: running"}]
    jsonschema.validate(found, quotes.SCHEMA_000)


INSTANCES = {"instances": [{"id": "a"}], "textContent": "Found 1 instances"}


def test_seed_000_21_text_content_in_the_data_is_the_text() -> None:
    def my_tool() -> Any:
        return success(INSTANCES)

    found = sent(app_with(my_tool, contract="envelope"), "my_tool")

    assert found["content"] == [{"type": "text", "text": "Found 1 instances"}]
    assert found["data"] == INSTANCES


def test_seed_000_43_a_wrapped_tool_function_is_registered_and_fails_as_it_does() -> None:
    def my_tool() -> Any:
        return {"success": False, "error": {"code": "GONE", "message": "it is gone"}}

    app = app_with(wrap(my_tool), contract="envelope")

    found = sent(app, "my_tool")

    assert (found["success"], found["error"]["code"]) == (False, "GONE")
    assert found["content"] == [{"type": "text", "text": "Error: it is gone"}]


def test_seed_000_45_a_reply_without_content_is_completed() -> None:
    def my_tool():  # type: ignore[no-untyped-def]  # as the seed writes it
        return {"success": True, "data": {"id": "instance-1"}}

    found = sent(app_with(my_tool, contract="envelope"), "my_tool")

    assert found["data"] == {"id": "instance-1"}
    assert found["content"] == [{"type": "text", "text": "ID: instance-1"}]
    jsonschema.validate(found, quotes.SCHEMA_000)


def test_seed_000_50_a_tool_formats_a_part_of_its_data_as_text() -> None:
    instances = [{"id": "a", "status": "running"}, {"id": "b", "status": "stopped"}]

    text = render({"instances": instances})

    assert text.startswith("Found 2 instances\n\nID  Status\n")


MISSING_SUCCESS: dict[str, Any] = {
    "content": [{"type": "text", "text": "a"}],
    "timestamp": "2025-05-03T14:30:00Z",
}


def test_seed_000_60_validate_asks_for_a_boolean_success() -> None:
    findings = validate(MISSING_SUCCESS, "envelope")

    assert [each.hint for each in findings] == ["Response must include a boolean success field"]


def test_seed_000_63_a_missing_timestamp_is_added() -> None:
    response: dict[str, Any] = {"success": True, "content": [{"type": "text", "text": "a"}]}

    left = repair(response, "envelope")

    assert left == ()
    assert validate(response, "envelope") == ()
    assert "timestamp" in response


@pytest.mark.parametrize("contract", ["envelope", "direct", "standard"])
@pytest.mark.parametrize(
    "value",
    [
        {"isError": True, "content": [{"type": "text", "text": "gone"}]},
        {"content": [{"type": "text", "text": '{"success":false,"error":"gone"}'}]},
        {"success": False, "error": {"code": "GONE", "message": "gone"}},
        {"error": "gone"},
        {"success": True, "data": [1]},
    ],
)
def test_seed_000_64_no_reply_of_an_app_is_invalid(value: Any, contract: str) -> None:
    def my_tool():  # type: ignore[no-untyped-def]  # as the seed writes it
        return value

    app = app_with(my_tool, contract=contract)

    findings = [
        each
        for dialect in ("mcp", "envelope")
        for each in validate(sent(app, "my_tool", dialect), dialect)
    ]

    assert [each for each in findings if each.severity == "error"] == []


def test_seed_000_65_a_unit_test_sees_the_content_array_with_items() -> None:
    def my_tool() -> dict[str, int]:
        return {"cpu": 45}

    response = asyncio.run(app_with(my_tool, contract="envelope").call("my_tool"))

    assert response.ok
    assert [block.text for block in response.content if hasattr(block, "text")] == ["CPU: 45"]


def test_seed_000_71_the_mock_client_displays_the_text_that_the_app_sends() -> None:
    def my_tool() -> dict[str, str]:
        return {"instanceId": "instance-1"}

    def failing() -> None:
        raise ToolError("it is gone", code="GONE")

    app = app_with(my_tool, failing, contract="envelope")
    client = DisplayClient()

    client.process_response(asyncio.run(app.call("my_tool")))
    text, failed = client.displayed_text, client.displayed_error
    client.process_response(asyncio.run(app.call("failing")))

    assert (text, failed) == ("Instance ID: instance-1", False)
    assert client.displayed_text == "Error: it is gone"
    assert client.error_code == "GONE"


def test_seed_000_74_the_middleware_refuses_a_body_without_success() -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(MISSING_SUCCESS).encode()]

    guarded = ValidReplies(app, dialect="envelope")
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/tool"}

    body = json.loads(b"".join(guarded(environ, lambda *started: None)))

    assert body["error"]["code"] == "INVALID_RESPONSE_FORMAT"


def test_seed_000_81_audit_tells_that_the_success_field_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def my_tool() -> dict[str, Any]:
        return MISSING_SUCCESS

    with caplog.at_level(logging.WARNING, "answerback.records"):
        audit("myTool", my_tool, dialect="envelope")()

    assert [record.getMessage() for record in caplog.records] == [
        "MCP response format issues in myTool: ['Missing success field']"
    ]


def test_seed_000_80_audit_takes_a_response_that_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """auditMcpResponse(toolName, response)"""
    with caplog.at_level(logging.WARNING, "answerback.records"):
        returned = audit("myTool", MISSING_SUCCESS, dialect="envelope")

    assert returned is MISSING_SUCCESS
    assert [record.getMessage() for record in caplog.records] == [
        "MCP response format issues in myTool: ['Missing success field']"
    ]


def test_seed_000_89_the_log_takes_the_author_s_logger(caplog: pytest.LogCaptureFixture) -> None:
    records = Records(Logging(logging.getLogger("monitoring")))

    with caplog.at_level(logging.WARNING, "monitoring"):
        audit("myTool", MISSING_SUCCESS, records=records, dialect="envelope")
        records.close()

    assert [record.name for record in caplog.records] == ["monitoring"]


LINK = Link("instance-1", "My instance", kind="instance")
OTHERS: list[Block] = [
    Link("a b/ü?", "n", kind="my kind"),
    Link("/docs", "n"),
    Link("C:\\notes.txt", "n", kind="file"),
    Image(url="chart.png"),
    Embedded("notes", "text"),
]


def test_seed_000_95_a_link_that_is_not_a_url_is_literal_in_the_envelope_and_a_uri_over_mcp() -> (
    None
):
    def my_tool() -> Any:
        return success("It runs.", content=[LINK])

    app = app_with(my_tool, contract="envelope")

    envelope, result = sent(app, "my_tool", "envelope"), sent(app, "my_tool", "mcp")

    assert envelope["content"][1] == {
        "type": "resource",
        "resourceType": "instance",
        "identifier": "instance-1",
        "name": "My instance",
    }
    assert result["content"][1]["uri"] == "urn:answerback:instance:instance-1"
    assert [each for each in validate(result, "mcp") if each.severity == "error"] == []


@pytest.mark.parametrize("block", [LINK, *OTHERS])
def test_seed_000_95_an_identifier_that_is_not_a_uri_is_read_back_from_mcp(block: Block) -> None:
    result = success(content=[block]).to("mcp")

    assert [each.rule for each in validate(result, "mcp")] == []
    assert read(result).content == (block,)


class Divided(NamedTuple):
    quotient: int
    remainder: int


def several():  # type: ignore[no-untyped-def]  # the row is about functions without annotations
    return 20, 10


def maybe() -> tuple[int, int] | None:
    return 1, 2


def named() -> Divided:
    return Divided(2, 1)


def one() -> tuple[int]:
    return (1,)


def nothing():  # type: ignore[no-untyped-def]  # the row is about functions without annotations
    return None


def no_results() -> tuple[()]:
    return ()


ROWS_001 = [
    ("07", several, {"result0": 20, "result1": 10}),
    ("07", maybe, {"result0": 1, "result1": 2}),
    ("08", named, {"quotient": 2, "remainder": 1}),
    ("09", one, {"result": 1}),
    ("11", nothing, {}),
    ("11", no_results, {}),
]


@pytest.mark.parametrize(("row", "function", "expected"), ROWS_001)
def test_seed_001_07_to_11_the_number_of_results_decides_their_form(
    row: str, function: Any, expected: dict[str, Any]
) -> None:
    app = app_with(function, contract="aligned")

    over_http = sent(app, function.__name__)
    over_mcp = sent(app, function.__name__, "mcp")

    assert over_http == expected
    assert json.loads(over_mcp["content"][0]["text"]) == expected
    assert over_mcp["structuredContent"] == expected


def test_seed_002_50_an_object_without_a_type_is_sent_as_itself() -> None:
    def hello():  # type: ignore[no-untyped-def]  # as the seed writes it
        return success("Hello", {"randomField": []})

    found = sent(app_with(hello, contract="apps"), "hello")

    assert found["content"] == [{"type": "text", "text": "Hello"}]
    assert found["structuredContent"] == {"randomField": []}


def test_seed_003_15_a_result_with_an_error_is_an_error() -> None:
    def weather() -> dict[str, Any]:
        return {"error": "Location not found"}

    found = sent(app_with(weather, contract="direct"), "weather")

    assert found["isError"] is True
    assert found["content"] == [{"type": "text", "text": "Error: Location not found"}]
    assert "structuredContent" not in found


def test_seed_003_44_a_tool_that_builds_the_result_itself_is_taken_at_its_word() -> None:
    def oslo():  # type: ignore[no-untyped-def]  # as the seed writes it
        return quotes.SUCCESS_003

    def nowhere():  # type: ignore[no-untyped-def]  # as the seed writes it
        return quotes.ERROR_003

    app = app_with(oslo, nowhere, contract="direct")
    error = sent(app, "nowhere")
    error.pop("_meta")

    assert sent(app, "oslo") == quotes.SUCCESS_003
    assert error == quotes.ERROR_003


def test_seed_004_17_a_handler_in_the_wrong_form_still_fails() -> None:
    legacy = {"success": False, "error": {"code": "NOT_THERE", "message": "Entity not found"}}

    def wrong():  # type: ignore[no-untyped-def]  # as the seed writes it
        return {"content": [{"type": "text", "text": json.dumps(legacy)}]}

    found = sent(app_with(wrong), "wrong", "mcp")

    assert found["isError"] is True
    assert found["content"] == [{"type": "text", "text": "Entity not found"}]
    assert found["_meta"]["answerback/error"]["code"] == "NOT_THERE"


CODED = Contract(name="coded", error_text="coded", http="mcp")


def test_seed_004_65_only_the_author_s_errors_are_coded() -> None:
    def delete(entities: list[str]) -> int:
        raise ToolError("Entity not found", code="ENTITY_GONE", details={"id": 7})

    def crash() -> int:
        raise RuntimeError("password=hunter2")

    app = app_with(delete, crash, contract=CODED)

    own = app.write(asyncio.run(app.call("delete", entities=[])))
    invalid = app.write(asyncio.run(app.call("delete")))
    masked = app.write(asyncio.run(app.call("crash")))

    assert own["content"][0]["text"] == 'ENTITY_GONE: Entity not found ({"id":7})'
    assert invalid["content"][0]["text"] == "Invalid arguments: entities: missing, expected array"
    assert masked["content"][0]["text"].startswith("The tool failed unexpectedly (reference ")
    assert masked["content"][0]["text"].endswith(")")


class PlainCode(enum.Enum):
    ENTITY_EXISTS = "ENTITY_EXISTS"


class TextCode(str, enum.Enum):  # noqa: UP042 -- many authors still write it this way
    ENTITY_EXISTS = "ENTITY_EXISTS"


class NumberCode(enum.Enum):
    ENTITY_EXISTS = enum.auto()


CODES: list[Any] = [
    PlainCode.ENTITY_EXISTS,
    TextCode.ENTITY_EXISTS,
    NumberCode.ENTITY_EXISTS,
]


@pytest.mark.parametrize("code", CODES)
def test_seed_004_58_an_enum_member_is_a_code_in_every_dialect(code: Any) -> None:
    class EntityError(NotFound):
        pass

    EntityError.code = code

    def raised() -> None:
        raise NotFound("Entity exists", code)

    def inherited() -> None:
        raise EntityError("Entity exists")

    def returned() -> Any:
        return failure("Entity exists", code, kind=NotFound)

    app = app_with(raised, inherited, returned)

    for name in ("raised", "inherited", "returned"):
        assert sent(app, name, "envelope")["error"]["code"] == "ENTITY_EXISTS"
        assert sent(app, name, "problem")["code"] == "ENTITY_EXISTS"
        assert sent(app, name, "rest") == {"error": "Entity exists"}
        mcp_error = sent(app, name, "mcp")["_meta"]["answerback/error"]
        assert (mcp_error["code"], mcp_error["kind"]) == ("ENTITY_EXISTS", "NOT_FOUND")


@pytest.mark.parametrize("code", CODES)
def test_seed_004_64_the_coded_text_shows_the_value_of_an_enum_member(code: Any) -> None:
    def failing() -> None:
        raise ToolError("Entity exists", code)

    app = app_with(failing, contract=Contract(name="coded", error_text="coded"))

    assert sent(app, "failing", "mcp")["content"][0]["text"] == "ENTITY_EXISTS: Entity exists"


def test_seed_004_58_an_enum_member_gets_a_status_from_the_app() -> None:
    class Codes(enum.Enum):
        GONE_BY_ENUM = "GONE_BY_ENUM"

    app = App("codes", codes={Codes.GONE_BY_ENUM: 410})

    @app.tool
    def failing() -> None:
        raise ToolError("It is gone", Codes.GONE_BY_ENUM)

    assert sent(app, "failing", "problem")["status"] == 410


@dataclass
class Created:
    created: int


@pytest.mark.parametrize("data", [{"created": 1}, Created(1)])
def test_seed_004_60_success_takes_the_data_as_its_only_argument(data: Any) -> None:
    """buildSuccessResponse(data)"""

    def create() -> Any:
        return success(data)

    assert sent(app_with(create), "create", "mcp") == {
        "content": [{"type": "text", "text": '{"created":1}'}],
        "structuredContent": {"created": 1},
        "isError": False,
    }


def test_seed_004_60_success_says_what_to_write_instead_of_data_twice_or_a_block() -> None:
    no_text: Any = {"created": 1}

    with pytest.raises(TypeError, match=r"the text first, not dict; write success\(text, data\)"):
        success(no_text, {"more": 2})
    with pytest.raises(TypeError, match=r"write content=\[Text\(…\)\]"):
        success(Text("a"))
