"""The codes of other servers' errors: an unknown tool, wrong arguments, a missing resource."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.canned_server import command

from answerback import connect, read


def failed_text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def rpc_error(number: int, message: str, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": number, "message": message, **members}}


@pytest.mark.parametrize(
    "result",
    [
        failed_text("Unknown tool: x"),
        failed_text("Unknown tool: 'x'"),
        failed_text("Error: Unknown tool: x"),
        failed_text("Tool x not found"),
        failed_text("Tool not found: x"),
        failed_text("Error: No such tool: x"),
        failed_text("MCP error -32602: Tool x not found"),
        failed_text("MCP error -32601: Unknown tool: x"),
        rpc_error(-32601, "Tool not found: x"),
        rpc_error(-32603, "Unknown tool: x"),
        rpc_error(-32600, "Unknown tool: x"),
        rpc_error(0, "Unknown tool: x"),
    ],
)
def test_an_unknown_tool_has_one_code(result: dict[str, Any]) -> None:
    error = read(result).error

    assert error is not None
    assert error.code == "TOOL_NOT_FOUND"
    assert "x" in error.message


@pytest.mark.parametrize(
    "result",
    [
        failed_text("Input validation error: 'city' is a required property"),
        failed_text("1 validation error for call[add]\nx\n  Missing required argument"),
        failed_text("2 validation errors for call[add]\nx\n  Field required"),
        failed_text("Error executing tool add: 1 validation error for addArguments\nx\n  Field"),
        failed_text("Error calling tool 'add': 2 validation errors for addArguments\nx\n  Field"),
        failed_text("Invalid arguments for tool add: [\n  {}\n]"),
        failed_text("Error: Invalid arguments: city is missing"),
        failed_text("Missing required parameter: city"),
        failed_text("MCP error -32602: Input validation error: Invalid arguments for tool add"),
        failed_text('provided parameters were invalid: parameter "sql" is required'),
        failed_text('Invalid input: [{"code":"invalid_type","path":["city"]}]'),
        failed_text("Error: Invalid fileKey: Required"),
        failed_text('[{"code":"invalid_type","path":["city"],"message":"Required"}]'),
        rpc_error(-32603, "Input validation error: 'city' is a required property"),
        rpc_error(-32000, "1 validation error for addArguments\nx\n  Field required"),
    ],
)
def test_wrong_arguments_have_one_code(result: dict[str, Any]) -> None:
    error = read(result).error

    assert error is not None
    assert error.code == "INVALID_ARGUMENTS"


@pytest.mark.parametrize(
    "result",
    [
        rpc_error(-32602, "Resource demo://nope not found"),
        rpc_error(-32602, "MCP error -32602: Resource demo://nope not found"),
        rpc_error(-32603, "Unknown resource: demo://nope"),
        rpc_error(0, "Unknown resource: demo://nope"),
        rpc_error(0, "Resource not found: demo://nope"),
        rpc_error(-32002, "no"),
        rpc_error(-32602, "no", data={"uri": "demo://nope"}),
        rpc_error(-32602, "Unknown prompt: nope"),
    ],
)
def test_a_missing_resource_or_prompt_is_not_found(result: dict[str, Any]) -> None:
    error = read(result).error

    assert error is not None
    assert error.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "result",
    [
        failed_text("The file lists an unknown tool: x"),
        failed_text("Tool x not found in the shed, because it was lent"),
        failed_text("3 validation errors"),
        failed_text("The form had 3 validation errors for two fields"),
        rpc_error(-32603, "the database is locked"),
    ],
)
def test_another_failure_has_none_of_these_codes(result: dict[str, Any]) -> None:
    error = read(result).error

    assert error is not None
    assert error.code == "UNKNOWN_ERROR"


@pytest.mark.parametrize(
    "answer",
    [
        failed_text("I do not know that one"),
        {"error": {"code": -32601, "message": "Method not found"}},
        {"error": {"code": -32602, "message": "bad name"}},
    ],
)
def test_a_call_of_a_tool_that_is_not_in_the_list_has_the_code_of_an_unknown_tool(
    answer: dict[str, Any],
) -> None:
    with connect(command([{"name": "act"}], call=answer)) as server:
        before = server.call("nope").error
        server.tools()
        unlisted, listed = server.call("nope").error, server.call("act").error

    assert before is not None
    assert unlisted is not None
    assert listed is not None
    assert unlisted.code == "TOOL_NOT_FOUND"
    assert unlisted.message == listed.message
    assert before.code == listed.code != "TOOL_NOT_FOUND"


def test_a_resource_that_a_server_does_not_have_is_not_found() -> None:
    answer = {"error": {"code": -32602, "message": "Resource note://x not found"}}

    with connect(command(read=answer)) as server:
        error = server.read("note://x").error

    assert error is not None
    assert error.code == "NOT_FOUND"
