"""Results that are no tool results: contents of resources, tasks, prompts, lists, old forms."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import mcp_types as types
import pytest
from fastmcp.exceptions import ToolError as FastMCPToolError
from fastmcp.tools.base import ToolResult

from answerback import Embedded, NotFound, read

CONTENTS = [
    {"uri": "file:///a.txt", "text": "hello", "mimeType": "text/plain"},
    {"uri": "file:///b.bin", "blob": b64encode(b"\0\1").decode()},
]
TASK = {"taskId": "t1", "createdAt": "2026-11-16T12:00:00Z", "ttlMs": None}


@pytest.mark.parametrize(
    "result",
    [
        {"contents": CONTENTS},
        {"jsonrpc": "2.0", "id": 1, "result": {"contents": CONTENTS, "resultType": "complete"}},
        types.ReadResourceResult.model_validate({"contents": CONTENTS}),
    ],
)
def test_the_contents_of_a_resource_are_embedded_blocks(result: Any) -> None:
    reply = read(result)

    assert reply.content == (
        Embedded("file:///a.txt", "hello", mime="text/plain"),
        Embedded("file:///b.bin", blob=b"\0\1"),
    )
    assert not reply.has_data
    assert reply.for_model().startswith("file:///a.txt:\nhello\n[resource: file:///b.bin")


@pytest.mark.parametrize(
    "data",
    [
        {"contents": []},
        {"contents": [{"uri": "file:///a.txt"}]},
        {"contents": [{"uri": "file:///b.bin", "blob": "no base64!"}]},
        {"taskId": "7", "status": "working"},
        {"taskId": "7", "status": "archived", "createdAt": "today"},
        {"toolResult": 5, "more": 6},
    ],
)
def test_an_object_that_only_looks_like_one_of_them_is_data(data: dict[str, Any]) -> None:
    reply = read(data)

    assert reply.ok
    assert reply.data == data


def test_an_object_whose_type_is_known_is_data() -> None:
    found = {"contents": CONTENTS}

    assert read(found, into=dict[str, Any]).data == found


@pytest.mark.parametrize(
    "result",
    [
        {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]},
        {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        {"completion": {"values": ["Oslo"]}},
        {},
    ],
)
def test_prompts_lists_and_other_results_are_data(result: dict[str, Any]) -> None:
    reply = read({"jsonrpc": "2.0", "id": 1, "result": result})

    assert reply.data == result
    assert reply.data_from == "result"


@pytest.mark.parametrize(
    "members",
    [
        {"content": [{"type": "text", "text": "done"}], "structuredContent": {"n": 1}},
        {"structuredContent": {"n": 1}},
    ],
)
def test_a_completed_task_is_its_result(members: dict[str, Any]) -> None:
    reply = read({**TASK, "status": "completed", "resultType": "complete", "result": members})

    assert reply.data == {"n": 1}
    assert reply.data_from == "structuredContent"


def test_a_completed_task_whose_result_is_an_error_is_a_failure() -> None:
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}

    assert not read({**TASK, "status": "completed", "result": result}).ok


@pytest.mark.parametrize(
    ("members", "code", "message"),
    [
        ({"status": "working"}, "TASK_CREATED", "the server is working on it"),
        ({"status": "input_required", "inputRequests": {}}, "TASK_CREATED", "the server is"),
        ({"status": "cancelled"}, "CANCELLED", "the task 't1' was cancelled"),
        ({"status": "failed", "statusMessage": "disk full"}, "UNKNOWN_ERROR", "disk full"),
        (
            {"status": "failed", "error": {"code": -32602, "message": "no"}},
            "INVALID_ARGUMENTS",
            "no",
        ),
    ],
)
def test_a_task_that_has_no_result_is_no_success(
    members: dict[str, Any], code: str, message: str
) -> None:
    reply = read({"jsonrpc": "2.0", "id": 1, "result": {**TASK, **members}})

    assert reply.error is not None
    assert reply.error.code == code
    assert reply.error.message.startswith(message)


def test_the_result_of_the_first_version_of_mcp_is_read() -> None:
    assert read({"toolResult": {"city": "Oslo"}}).data == {"city": "Oslo"}
    assert read({"toolResult": "sunny"}).for_model() == "sunny"
    assert not read({"toolResult": {"error": "no such city"}}).ok


def test_null_is_data_where_the_version_allows_it() -> None:
    new: dict[str, Any] = {"content": [], "structuredContent": None, "resultType": "complete"}
    old: dict[str, Any] = {"content": [], "structuredContent": None}

    assert (read(new).has_data, read(new).data) == (True, None)
    assert read(new, into=int | None).data is None
    assert not read(old).has_data


def test_the_metadata_of_a_list_is_no_data_and_is_not_shown() -> None:
    reply = read({"tools": [], "_meta": {"note": "hidden"}})

    assert reply.data == {"tools": []}
    assert reply.meta == {"note": "hidden"}
    assert "hidden" not in reply.for_model()


def test_the_contents_that_fastmcps_client_returns_are_embedded_blocks() -> None:
    result = types.ReadResourceResult.model_validate({"contents": CONTENTS})

    assert read(result.contents).content[0] == Embedded("file:///a.txt", "hello", mime="text/plain")


def test_the_result_of_a_fastmcp_tool_has_its_structured_data() -> None:
    result = ToolResult(content="hello", structured_content={"a": 1})

    assert read(result).data == {"a": 1}


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (FastMCPToolError("Error calling tool 'x': no"), "UNKNOWN_ERROR", "Error calling tool"),
        (FastMCPToolError("CITY_UNKNOWN: no such city"), "CITY_UNKNOWN", "no such city"),
        (NotFound("no such city", code="CITY_UNKNOWN"), "CITY_UNKNOWN", "no such city"),
        (OSError("disk full"), "INVALID_RESPONSE_FORMAT", "cannot read a reply"),
    ],
)
def test_an_exception_that_reports_a_failure_of_the_server_is_that_failure(
    raised: Exception, code: str, message: str
) -> None:
    reply = read(raised)

    assert reply.error is not None
    assert reply.error.code == code
    assert reply.error.message.startswith(message)
