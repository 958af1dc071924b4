"""Questions to the user on stdio: malformed answers, cancellation, and a closed stdin."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fuzz.stdio_client import (
    StdioClient,
    call,
    cancel,
    first_question,
    stdio_client,
    wait_until,
)

EMPTY = {"ask_model": "", "ask_roots": 0}
"""The results of tools that read an answer without the member they need as an empty one."""


@pytest.mark.parametrize("tool", ["ask_before", "ask_name", "ask_model", "ask_roots"])
@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -1, "message": "hunter3"}},
        {"error": "nonsense"},
        {"error": None},
        {"result": None},
        {"result": 5},
        {"result": []},
        {"result": {}},
        {"result": {"action": 5}},
        {"result": {"action": "accept", "content": "x"}},
        {"result": {"action": "accept", "content": {"value": {}}}},
        {"result": {"content": 5, "roots": 5}},
        {"result": {"content": {"text": 5}, "roots": [5]}},
        {"result": {"content": {"type": "text", "text": None}, "model": 5}},
    ],
)
def test_a_malformed_answer_fails_its_call_or_is_read_as_an_empty_one(
    client: StdioClient, tool: str, answer: dict[str, Any]
) -> None:
    question = first_question(client, tool)

    client.send({"jsonrpc": "2.0", "id": question["id"], **answer})

    result = client.receive_response("asking")["result"]
    is_empty = tool in EMPTY and result.get("structuredContent") == {"result": EMPTY[tool]}
    assert result["isError"] is True or is_empty
    # A second answer to the question is ignored.
    client.send({"jsonrpc": "2.0", "id": question["id"], **answer})
    assert client.drain() == []


@pytest.mark.parametrize("tool", ["ask_before", "ask_name"])
def test_a_call_cancelled_while_it_asks_gets_no_response(client: StdioClient, tool: str) -> None:
    for _ in range(20):
        question = first_question(client, tool)
        client.send(cancel("asking"))
        wait_until(lambda: _is_free(client, "asking"))
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})

    assert client.drain() == []


def _is_free(client: StdioClient, id: str) -> bool:
    """Whether no request with this id is running."""
    client.send(call(id, "add_in_thread", x=1, y=1))
    return "result" in client.receive_response(id)


@pytest.mark.parametrize("tool", ["ask_before", "ask_name"])
def test_the_server_ends_when_its_client_closes_stdin_while_it_is_asked(tool: str) -> None:
    with stdio_client() as client:
        client.initialize(elicitation={})
        first_question(client, tool)

        assert client.close_and_wait() == 0
        assert [frame["id"] for frame in client.read_to_end()] in ([], ["asking"])
        assert "Traceback" not in client.stderr()


def test_an_error_as_the_answer_to_a_question_is_a_refusal(client: StdioClient) -> None:
    question = first_question(client, "ask_name")
    error = {"code": -32601, "message": "no"}

    client.send({"jsonrpc": "2.0", "id": question["id"], "error": error})

    content = client.receive()["result"]["content"]
    assert content[0]["text"] == "The client refused"
