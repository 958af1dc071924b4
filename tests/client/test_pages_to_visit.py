"""Pages that a server wants the user to visit: the error -32042, and `input_required` of 2026."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.conftest import http_server
from tests.client.faulty_http import Faulty, faulty

from answerback import connect
from answerback.client import ElicitationRequest

PAGE = {"mode": "url", "url": "https://login.example/x", "message": "Log in", "elicitationId": "v1"}


def visiting(asked: list[ElicitationRequest]) -> Callable[[ElicitationRequest], bool]:
    """A user who visits every page; *asked* has the questions."""

    def elicit(request: ElicitationRequest) -> bool:
        asked.append(request)
        return True

    return elicit


def refusing(times: int, page: dict[str, Any] = PAGE) -> type[Faulty]:
    """A server of 2025-11-25 that refuses calls *times* times until the page was visited."""

    def answer(server: Faulty, asked: dict[str, Any]) -> None:
        if len(server.calls) > times:
            server.send_result(asked, {"content": [{"type": "text", "text": "welcome"}]})
            return
        error = {"code": -32042, "message": "Log in first", "data": {"elicitations": [page]}}
        body = {"jsonrpc": "2.0", "id": asked["id"], "error": error}
        server.send_body(200, json.dumps(body).encode(), "application/json")

    return faulty(answer)


@pytest.mark.parametrize("times", [1, 3], ids=["at once", "the server notices the visit later"])
def test_a_page_is_visited_once_and_the_call_is_sent_again(times: int) -> None:
    asked: list[ElicitationRequest] = []
    server = refusing(times)

    with http_server(server) as url, connect(url, elicit=visiting(asked)) as remote:
        reply = remote.call("unsafe")

    assert reply.ok, reply.error
    assert [(each.url, each.id) for each in asked] == [("https://login.example/x", "v1")]
    assert len(server.calls) == times + 1


@pytest.mark.parametrize(
    "options",
    [{}, {"elicit": lambda _: None}, {"elicit": lambda _: True, "elicit_url": False}],
    ids=["no handler", "declined", "no pages"],
)
def test_a_page_that_is_not_visited_is_an_input_required_error(options: Any) -> None:
    server = refusing(100)

    with http_server(server) as url, connect(url, **options) as remote:
        reply = remote.call("unsafe")

    assert reply.error is not None
    assert reply.error.code == "INPUT_REQUIRED"
    assert reply.error.details["data"]["elicitations"] == [PAGE]
    assert len(server.calls) == 1


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://"])
def test_an_address_that_is_no_web_page_never_reaches_the_handler(url: str) -> None:
    asked: list[ElicitationRequest] = []

    with (
        http_server(refusing(100, {**PAGE, "url": url})) as server_url,
        connect(server_url, elicit=visiting(asked)) as remote,
    ):
        reply = remote.call("unsafe")

    assert reply.error is not None
    assert reply.error.code == "INPUT_REQUIRED"
    assert asked == []


_STATELESS = """
import json, sys
page = {"mode": "url", "url": "https://login.example/x", "message": "Log in"}
question = {"method": "elicitation/create", "params": page}
calls = 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}
    if asked["method"] == "tools/call":
        calls += 1
        result = {"resultType": "input_required", "inputRequests": {"login": question}}
        if calls > 3:
            given = json.dumps(asked["params"]["inputResponses"])
            result = {"resultType": "complete", "content": [{"type": "text", "text": given}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def test_a_stateless_server_that_asks_for_the_same_page_again_does_not_ask_the_user_again() -> None:
    asked: list[ElicitationRequest] = []
    command = [sys.executable, "-I", "-S", "-c", _STATELESS]

    with connect(command, elicit=visiting(asked)) as server:
        reply = server.call("login")

    assert reply.ok, reply.error
    assert json.loads(reply.for_model()) == {"login": {"action": "accept"}}
    assert [each.url for each in asked] == ["https://login.example/x"]
