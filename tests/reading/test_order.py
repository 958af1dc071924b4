"""`read` looks for an error first, then for data, then for text, in the order of seed 003."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.seeds.quotes import ERROR_003, OSLO_003, RATE_LIMITED_004, SUCCESS_003, WEATHER_004

from answerback import Image, Link, Text, read

NESTED = "the JSON of a table"


def text_result(text: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **members}


def read_by_the_seeds_agent(result: dict[str, Any]) -> str:
    """The seed's own code, word for word but for its comments."""
    if result.get("isError"):
        tool_response = result["content"][0]["text"]
    else:
        if "structuredContent" in result:
            tool_response = json.dumps(result["structuredContent"])
        else:
            tool_response = result["content"][0]["text"]
    assert isinstance(tool_response, str)
    return tool_response


def test_seed_003_a_success_is_its_structured_content() -> None:
    reply = read(SUCCESS_003)

    assert reply.ok
    assert reply.data == OSLO_003
    assert reply.data_from == "structuredContent"
    assert json.loads(reply.for_model()) == json.loads(read_by_the_seeds_agent(SUCCESS_003))


def test_seed_003_a_business_error_is_its_text() -> None:
    reply = read(ERROR_003)

    assert reply.error is not None
    assert reply.error.message == "Error: Location not found: NonexistentCity12345"
    assert reply.for_model() == read_by_the_seeds_agent(ERROR_003)
    assert not reply.has_data


def test_seed_003_a_business_error_as_json_has_its_message() -> None:
    result = text_result(json.dumps({"error": "Invalid API key"}), isError=True)

    reply = read(result)

    assert reply.error is not None
    assert reply.error.message == "Invalid API key"
    assert reply.for_model() == read_by_the_seeds_agent(result)


def test_seed_003_an_infrastructure_error_is_read_like_any_other() -> None:
    reply = read(text_result("Error: Connection timed out", isError=True))

    assert reply.error is not None
    assert reply.for_model() == "Error: Connection timed out"


def test_seed_003_alternative_1_a_string_is_a_text() -> None:
    reply = read("Temperature in Oslo: 5°C")

    assert reply.ok
    assert reply.content == (Text("Temperature in Oslo: 5°C"),)
    assert not reply.has_data
    assert reply.for_model() == "Temperature in Oslo: 5°C"


@pytest.mark.parametrize("role", ["function", "tool"])
def test_seed_003_alternative_2_a_message_for_openai_has_its_data(role: str) -> None:
    reply = read({"role": role, "content": json.dumps(OSLO_003)})

    assert reply.data == OSLO_003
    assert reply.data_from == "text"


def test_seed_003_alternative_3_json_in_the_text_is_the_data_and_the_text_stays() -> None:
    text = json.dumps(OSLO_003)

    reply = read(text_result(text, isError=False))

    assert reply.data == OSLO_003
    assert reply.data_from == "text"
    assert reply.content == (Text(text),)


def test_seed_003_the_sketched_image_and_resource_are_read() -> None:
    blocks = [
        {"type": "image", "data": "R0lGODlh", "mimeType": "image/gif"},
        {"type": "resource", "uri": "file:///report.txt"},
    ]

    reply = read({"content": blocks, "isError": False})

    assert reply.content == (
        Image(b"GIF89a", "image/gif"),
        Link("file:///report.txt", "file:///report.txt"),
    )
    assert [finding.rule for finding in reply.findings] == ["AB112"]


def test_an_error_of_the_protocol_comes_before_everything_else() -> None:
    reply = read({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}, "result": {}})

    assert reply.error is not None
    assert reply.error.message == "no"


@pytest.mark.parametrize("members", [{}, {"id": 1}, {"jsonrpc": "2.0", "id": 1}])
def test_a_failed_result_in_a_response_without_its_version_is_a_failure(
    members: dict[str, Any],
) -> None:
    assert not read({**members, "result": text_result("no", isError=True)}).ok


def test_is_error_comes_before_the_data() -> None:
    reply = read(text_result("no", structuredContent={"city": "Oslo"}, isError=True))

    assert reply.error is not None
    assert reply.error.details == {"city": "Oslo"}
    assert not reply.has_data


def test_structured_content_comes_before_a_text_that_is_json() -> None:
    reply = read(text_result('{"a":1}', structuredContent={"a": 2}))

    assert reply.data == {"a": 2}


@pytest.mark.parametrize("text", ["5", '"five"', "null", "true", "{a}", "[1] is a list", ""])
def test_a_text_that_is_no_json_object_or_array_is_no_data(text: str) -> None:
    reply = read(text_result(text))

    assert reply.ok
    assert not reply.has_data
    assert reply.content == (Text(text),)


def test_the_text_of_one_block_among_several_is_no_data() -> None:
    blocks = [{"type": "text", "text": '{"a":1}'}, {"type": "text", "text": "more"}]

    reply = read({"content": blocks})

    assert not reply.has_data
    assert len(reply.content) == 2


def test_a_block_of_an_unknown_type_is_no_data() -> None:
    reply = read({"content": [{"type": "table", "rows": [1]}]})

    assert not reply.has_data
    assert reply.content == (Text('{"type":"table","rows":[1]}'),)


def test_seed_004_a_failure_encoded_in_the_text_is_a_failure() -> None:
    error = {"code": "ERROR_CODE", "message": "error message"}

    reply = read(text_result(json.dumps({"success": False, "error": error})))

    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == ("ERROR_CODE", "error message")


def test_seed_004_a_success_encoded_in_the_text_is_its_data() -> None:
    reply = read(text_result(json.dumps({"success": True, "data": WEATHER_004})))

    assert reply.data == WEATHER_004
    assert reply.data_from == "text"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (-32700, "INVALID_JSON"),
        (-32600, "INVALID_REQUEST"),
        (-32601, "METHOD_NOT_FOUND"),
        (-32602, "INVALID_ARGUMENTS"),
        (-32603, "UNKNOWN_ERROR"),
        (-32800, "CANCELLED"),
        (-32801, "TOO_LARGE"),
        (-32802, "UNAVAILABLE"),
    ],
)
def test_seed_004_the_numbers_of_json_rpc_are_codes(number: int, code: str) -> None:
    error = {"code": number, "message": "it failed", "data": {"why": "x"}}

    reply = read({"jsonrpc": "2.0", "id": 3, "error": error})

    assert reply.error is not None
    assert reply.error.code == code
    assert reply.error.details == {"code": number, "data": {"why": "x"}}


def test_a_resource_that_is_not_there_is_not_found_in_every_version() -> None:
    older = {"code": -32002, "message": "Resource not found"}
    newer = {"code": -32602, "message": "no", "data": {"uri": "note://zz"}}

    replies = [read({"jsonrpc": "2.0", "id": 1, "error": each}) for each in (older, newer)]

    assert [each.error.code for each in replies if each.error] == ["NOT_FOUND", "NOT_FOUND"]


def test_seed_004_an_unknown_tool_has_its_own_code() -> None:
    error = {"code": -32602, "message": "Unknown tool: invalid_tool_name"}

    reply = read({"jsonrpc": "2.0", "id": 3, "error": error})

    assert reply.error is not None
    assert reply.error.code == "TOOL_NOT_FOUND"
    assert reply.error.message == "Unknown tool: invalid_tool_name"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("MCP error -32602: Tool x not found", "TOOL_NOT_FOUND", "Tool x not found"),
        ("MCP error -32602: city: required", "INVALID_ARGUMENTS", "city: required"),
        ("MCP error -32603: no", "UNKNOWN_ERROR", "no"),
        ("MCP error -1: no", "UNKNOWN_ERROR", "no"),
        ("MCP error: no", "UNKNOWN_ERROR", "MCP error: no"),
    ],
)
def test_the_number_that_the_typescript_sdk_writes_into_a_text_is_a_code(
    text: str, code: str, message: str
) -> None:
    reply = read(text_result(text, isError=True))

    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == (code, message)
    assert reply.for_model() == text


def test_seed_004_a_tool_error_is_its_message() -> None:
    reply = read(text_result(RATE_LIMITED_004, isError=True))

    assert reply.error is not None
    assert reply.error.message == RATE_LIMITED_004


def test_seed_004_the_coded_message_has_its_parts() -> None:
    reply = read(text_result('CITY_UNKNOWN: no such city ({"city":"Olso"})', isError=True))

    assert reply.error is not None
    assert reply.error.code == "CITY_UNKNOWN"
    assert reply.error.message == "no such city"
    assert reply.error.details == {"city": "Olso"}


@pytest.mark.parametrize("text", ["Error: no", "FATAL: no", "Note: A_B: c", "A_B no"])
def test_a_word_before_a_colon_is_not_always_a_code(text: str) -> None:
    reply = read(text_result(text, isError=True))

    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == ("UNKNOWN_ERROR", text)


def test_a_question_of_the_server_is_no_success() -> None:
    questions = {"1": {"method": "elicitation/create", "params": {"message": "Sure?"}}}
    result = {"resultType": "input_required", "inputRequests": questions, "requestState": "s"}

    reply = read(result)

    assert reply.error is not None
    assert reply.error.code == "INPUT_REQUIRED"
    assert reply.error.details == {"inputRequests": questions, "requestState": "s"}
    assert reply.raw == result


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "task", "taskId": "t1", "status": "working", "ttlMs": None},
        {"task": {"taskId": "t1", "status": "working"}},
    ],
)
def test_a_task_is_no_success(result: dict[str, Any]) -> None:
    reply = read({"jsonrpc": "2.0", "id": 1, "result": result})

    assert reply.error is not None
    assert reply.error.code == "TASK_CREATED"
    assert reply.error.details["taskId"] == "t1"


def test_an_unknown_type_of_result_is_no_success() -> None:
    reply = read(text_result("half of it", resultType="partial"))

    assert reply.error is not None
    assert reply.error.code == "UNKNOWN_RESULT_TYPE"
    assert reply.error.details["content"] == [{"type": "text", "text": "half of it"}]


@pytest.mark.parametrize(
    ("meta", "schema"),
    [
        ({"fastmcp": {"wrap_result": True}}, None),
        ({}, {"type": "object", "x-fastmcp-wrap-result": True}),
        ({}, {"properties": {"result": {"type": "integer"}}, "required": ["result"]}),
    ],
)
def test_a_result_is_unwrapped_where_a_marker_or_the_schema_says_so(
    meta: dict[str, Any], schema: dict[str, Any] | None
) -> None:
    result = text_result("5", structuredContent={"result": 5}, _meta=meta)

    assert read(result, output_schema=schema).data == 5


@pytest.mark.parametrize("schema", [None, {"properties": {"result": {}, "more": {}}}])
def test_a_result_without_a_marker_stays_an_object(schema: dict[str, Any] | None) -> None:
    result = text_result("5", structuredContent={"result": 5})

    assert read(result, output_schema=schema).data == {"result": 5}


def test_an_error_object_as_data_is_a_failure_unless_a_type_is_known() -> None:
    result = text_result("x", structuredContent={"status": "error", "message": "disk full"})

    assert not read(result).ok
    data = result["structuredContent"]
    assert read(result, output_schema={"properties": {key: {} for key in data}}).data == data
    assert read(result, into=dict[str, str]).data == data


WRAPPED = {"fastmcp": {"wrap_result": True}}
TEXTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
PLAIN = [
    text_result("plain"),
    text_result("plain", isError=False, resultType="complete", _meta={"a": 1}),
    text_result("10", structuredContent={"result": 10}),
    text_result("10", structuredContent={"result": 10}, _meta=WRAPPED),
    text_result("", structuredContent={}),
    {"content": TEXTS, "structuredContent": {"a": [1]}},
    {"content": TEXTS},
]
UNUSUAL = [
    text_result('{"a": 1}'),
    text_result(" [1]"),
    text_result("null", structuredContent=None),
    text_result("x", structuredContent=[1, 2]),
    text_result("x", structuredContent={"success": False, "error": "it broke"}),
    text_result("x", structuredContent={"error": {"code": "NOT_FOUND", "message": "none"}}),
    text_result("x", isError=True),
    text_result("x", isError=None),
    text_result("x", isError="false"),
    text_result("x", isError=0),
    text_result("x", resultType="task", task={"taskId": "1"}),
    text_result("x", resultType=None),
    text_result("x", _meta={"answerback/bare": True}, structuredContent={"result": 1}),
    text_result("x", _meta=[1]),
    text_result("x", success=True),
    text_result("x", other=1),
    {"content": []},
    {"content": [], "structuredContent": {"a": 1}},
    {"structuredContent": {"a": 1}},
    {"content": [{"type": "text"}]},
    {"content": [{"type": "text", "text": 1}]},
    {"content": [{"type": "text", "text": "x", "annotations": {"priority": 1}}]},
    {"content": [{"type": "text", "data": "x"}]},
    {"content": ["x"]},
    {"content": "x"},
    {"_meta": {}},
    {},
]


@pytest.mark.parametrize("schema", [None, {"type": "object"}, {"x-fastmcp-wrap-result": True}])
@pytest.mark.parametrize("result", PLAIN + UNUSUAL)
def test_a_dict_is_read_like_its_json_text(result: Any, schema: dict[str, Any] | None) -> None:
    """A plain dict takes a shorter way through `read` than text does, to the same reply."""
    short, long = (read(each, output_schema=schema) for each in (result, json.dumps(result)))

    seen = [
        (each.content, each.data, each.error, each.meta, each.shape, each.data_from, each.findings)
        for each in (short, long)
    ]
    assert seen[0] == seen[1]
    assert short.raw == long.raw == result


@pytest.mark.parametrize("result", PLAIN + UNUSUAL)
def test_a_dict_is_read_into_a_type_like_its_json_text(result: Any) -> None:
    for into in (str, dict[str, Any]):
        short, long = (read(each, into) for each in (result, json.dumps(result)))

        assert (short.data, short.error) == (long.data, long.error)
