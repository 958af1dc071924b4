"""Whether a reply failed: `read` and `connect` say the same; `findings` says what is doubtful."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.client.canned_server import command

from answerback import Reply, connect, read

QUOTA = {"success": False, "error": "quota"}
STATUS = {"type": "boolean"}
TEXT = {"type": "string"}


def result_of(data: Any, **members: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": json.dumps(data)}]
    return {"content": content, "structuredContent": data, **members}


def text_result(text: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **members}


def both_ways(result: Any, schema: dict[str, Any] | None = None) -> list[Reply[Any]]:
    """The reply of `read`, and the reply of `connect` to a server with this tool."""
    tool = {"name": "act"} if schema is None else {"name": "act", "outputSchema": schema}
    with connect(command([tool], call=result)) as server:
        server.tools()
        called = server.call("act")
    return [read(result, output_schema=schema), called]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"type": "object", "additionalProperties": True},
        {"type": "object", "properties": {"contexts": {"type": "array"}}},
        {"type": "object", "properties": {"contexts": {"type": "array"}}, "required": ["contexts"]},
        # It names the members, but the data breaks it.
        {"properties": {"success": STATUS, "error": TEXT, "n": {}}, "required": ["n"]},
    ],
)
def test_an_error_object_is_a_failure_unless_the_schema_names_its_members(
    schema: dict[str, Any] | None,
) -> None:
    replies = both_ways(result_of(QUOTA), schema)

    assert [reply.error.message for reply in replies if reply.error] == ["quota", "quota"]


@pytest.mark.parametrize(
    ("data", "schema"),
    [
        (QUOTA, {"properties": {"success": STATUS, "error": TEXT}, "required": ["success"]}),
        (
            QUOTA,
            {"$ref": "#/$defs/R", "$defs": {"R": {"properties": {"success": {}, "error": {}}}}},
        ),
        (QUOTA, {"anyOf": [{"properties": {"success": STATUS}}, {"properties": {"error": TEXT}}]}),
        ({"error": "no wind"}, {"properties": {"error": TEXT}}),
    ],
)
def test_an_error_object_is_data_if_the_schema_names_its_members(
    data: dict[str, Any], schema: dict[str, Any]
) -> None:
    replies = both_ways(result_of(data), schema)

    assert [reply.data for reply in replies] == [data, data]


def test_the_members_of_a_wrapped_value_are_those_of_the_schema_of_result() -> None:
    wrapped = result_of({"result": QUOTA})
    inner = {"properties": {"success": STATUS, "error": TEXT}}
    names_them = {"properties": {"result": inner}, "required": ["result"]}
    names_none = {"properties": {"result": {"type": "object"}}, "required": ["result"]}

    assert [reply.data for reply in both_ways(wrapped, names_them)] == [QUOTA, QUOTA]
    assert [reply.ok for reply in both_ways(wrapped, names_none)] == [False, False]


@pytest.mark.parametrize(
    "more", [{"servers": []}, {"data": [1]}, {"count": 3, "url": "http://localhost"}]
)
def test_success_false_beside_an_error_text_is_a_failure_whatever_else_is_there(
    more: dict[str, Any],
) -> None:
    data = {"success": False, "error": "no dev server", **more}

    replies = [*both_ways(text_result(json.dumps(data))), *both_ways(result_of(data)), read(data)]

    assert [reply.error.message for reply in replies if reply.error] == ["no dev server"] * 5


@pytest.mark.parametrize(
    "data",
    [
        {"success": True, "error": "none", "servers": []},
        {"success": False, "error": "", "servers": [1]},
        {"success": False, "error": None, "servers": [1]},
        {"success": False, "attempts": 3},
        {"test": "login", "error": "no button"},
    ],
)
def test_a_record_with_other_members_is_data(data: dict[str, Any]) -> None:
    assert [reply.data for reply in both_ways(result_of(data))] == [data, data]


def test_a_type_that_the_caller_asks_for_is_data() -> None:
    assert read(result_of(QUOTA), into=dict[str, Any]).data == QUOTA


@pytest.mark.parametrize(
    ("result", "rule", "pointer"),
    [
        (text_result("Error: 401 Unauthorized"), "AB201", "/content/0/text"),
        (text_result("Unknown tool: act", structuredContent=None), "AB201", "/content/0/text"),
        (
            text_result("Error: no disk", structuredContent={"result": "Error: no disk"}),
            "AB201",
            "/content/0/text",
        ),
        (
            {"content": [{"type": "text", "text": each} for each in ("a", json.dumps(QUOTA))]},
            "AB202",
            "/content/1/text",
        ),
    ],
)
def test_a_reply_that_only_says_that_it_failed_is_a_success_with_a_finding(
    result: dict[str, Any], rule: str, pointer: str
) -> None:
    replies = [*both_ways(result), read(json.dumps(result)), read(result, strict=True)]

    assert [reply.ok for reply in replies] == [True] * 4
    found = [[(each.rule, each.pointer) for each in reply.findings] for reply in replies]
    assert found == [[(rule, pointer)]] * 4


def test_an_error_object_that_is_declared_as_data_is_a_finding() -> None:
    schema = {"properties": {"success": STATUS, "error": TEXT}}

    replies = both_ways(result_of(QUOTA), schema)

    assert [[each.rule for each in reply.findings] for reply in replies] == [["AB202"], ["AB202"]]


@pytest.mark.parametrize(
    "result",
    [
        text_result("It is 5 degrees in Oslo."),
        result_of({"city": "Oslo"}),
        text_result("Error: no disk", isError=True),
        text_result('{"a": 1}'),
        "Temperature in Oslo: 5",
        {"jsonrpc": "2.0", "id": 1, "result": result_of({"a": [1]})},
        [1, 2],
    ],
)
def test_a_plain_success_and_a_failure_have_no_findings(result: Any) -> None:
    assert read(result).findings == ()


def test_a_very_long_text_is_not_searched_for_an_error_object() -> None:
    texts = [json.dumps({"error": "x" * 1_000_000}), "and more"]

    reply = read({"content": [{"type": "text", "text": each} for each in texts]})

    assert reply.findings == ()


@pytest.mark.parametrize("flag", ["is_error", "isError"])
def test_a_flag_by_its_python_name_is_read_and_reported(flag: str) -> None:
    result = text_result("no disk", **{flag: True})

    replies = [*both_ways(result), read(json.dumps(result))]

    assert [reply.error.message for reply in replies if reply.error] == ["no disk"] * 3
    assert [reply.raw for reply in replies] == [result] * 3
    rules = [[each.rule for each in reply.findings] for reply in replies]
    assert rules == [["AB118"] if flag == "is_error" else []] * 3


def test_a_result_that_the_sdk_dumped_with_its_python_names_has_no_findings() -> None:
    block = {"type": "text", "text": "no disk", "annotations": None, "meta": None}
    dumped = {"meta": None, "content": [block], "structured_content": None, "is_error": True}

    reply = read(dumped, strict=True)

    assert reply.error is not None
    assert (reply.error.message, reply.raw, reply.findings) == ("no disk", dumped, ())
