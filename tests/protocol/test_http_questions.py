"""Questions to the user over HTTP: signed request state, answers, and clients that disconnect."""

from __future__ import annotations

import json
import time
from hashlib import blake2b
from typing import Any

import msgspec
import pytest
from tests.fuzz.http_client import (
    HttpResponse,
    ServedApp,
    read_to_end,
    read_until,
    stateless_call,
    stateless_request,
)
from tests.fuzz.stdio_client import call
from tests.protocol.signed_tokens import FOREIGN, OURS, VALID_ID, with_other_character


def state_for(
    name: str, arguments: bytes, answers: dict[str, Any], *, expires: float = 60
) -> bytes:
    """The payload of a request state, packed as the server packs it."""
    digest = blake2b(b"tool\0%b\0%b" % (name.encode(), arguments), digest_size=16).digest()
    return msgspec.msgpack.encode([int(time.time() + expires), digest, answers])


def first_question(served: ServedApp) -> tuple[str, str]:
    """Call `ask_name`; the key of its question, and the request state."""
    result = served.post_stateless(stateless_call(1, "ask_name")).frame["result"]
    assert result["resultType"] == "input_required"
    (key,) = result["inputRequests"]
    return key, result["requestState"]


def retry(served: ServedApp, state: Any, frame: Any, answers: Any = None) -> HttpResponse:
    """Repeat a request with a request state and the user's answers."""
    frame["params"] |= {"requestState": state, "inputResponses": {} if answers is None else answers}
    return served.post_stateless(frame)


def test_a_request_repeated_with_its_state_and_the_answer_gets_its_result(
    served: ServedApp,
) -> None:
    key, state = first_question(served)

    answer = {key: {"action": "accept", "content": {"value": "Ada"}}}
    response = retry(served, state, stateless_call(2, "ask_name"), answer)

    assert response.frame["result"]["structuredContent"] == {"result": "Hello, Ada!"}


FORGED_STATES = {
    "empty": "",
    "short": "x",
    "plain": "A" * 200,
    "not ASCII": "\u2603",
    "a session id": VALID_ID,
    "signed, but empty": OURS.sign(b"", b"round"),
    "signed, but malformed": OURS.sign(b"\xc1", b"round"),
    "expired": OURS.sign(state_for("ask_name", b"{}", {}, expires=-1), b"round"),
    "signed with another key": FOREIGN.sign(state_for("ask_name", b"{}", {}), b"round"),
    "signed for another purpose": OURS.sign(state_for("ask_name", b"{}", {}), b"session"),
    "of another tool": OURS.sign(state_for("ask_model", b"{}", {}), b"round"),
}


@pytest.mark.parametrize("which", FORGED_STATES)
def test_a_forged_or_expired_request_state_is_refused_with_400(
    served: ServedApp, which: str
) -> None:
    response = retry(served, FORGED_STATES[which], stateless_call(2, "ask_name"))

    assert (response.status, response.code) == (400, -32602)
    assert response.frame["error"]["message"] == "Invalid requestState"
    assert response.frame["id"] == 2


@pytest.mark.parametrize("state", [5, [], {}, True, 1.5])
def test_a_request_state_that_is_not_a_string_is_refused_with_400(
    served: ServedApp, state: Any
) -> None:
    response = retry(served, state, stateless_call(2, "ask_name"))

    assert (response.status, response.code) == (400, -32602)


def test_a_request_state_with_any_character_changed_is_refused_with_400(served: ServedApp) -> None:
    _, state = first_question(served)

    for place in range(0, len(state), 3):
        response = retry(served, with_other_character(state, place), stateless_call(2, "ask_name"))
        assert (response.status, response.code) == (400, -32602), place


def test_the_request_state_of_another_request_is_refused_with_400(served: ServedApp) -> None:
    _, state = first_question(served)
    prompt = stateless_request(2, "prompts/get", name="ask_name", arguments={})

    for frame in (
        stateless_call(2, "ask_name", greeting="Goodbye"),
        stateless_call(2, "ask_model"),
        prompt,
    ):
        response = retry(served, state, frame)
        assert (response.status, response.code) == (400, -32602), frame["method"]


@pytest.mark.parametrize(
    "answers",
    [
        {"unknown question": {"action": "accept"}},
        {"KEY": {"action": "decline"}},
        {"KEY": {"action": 5}},
        {"KEY": {}},
        {"KEY": {"action": "accept", "content": 5}},
        {"KEY": {"action": "accept", "content": {"value": {"deep": []}}}},
    ],
)
def test_a_malformed_answer_fails_its_call_or_is_asked_for_again(
    served: ServedApp, answers: Any
) -> None:
    key, state = first_question(served)
    responses = {key if name == "KEY" else name: value for name, value in answers.items()}

    result = retry(served, state, stateless_call(2, "ask_name"), responses).frame["result"]

    assert result.get("isError") is True or result["resultType"] == "input_required"


@pytest.mark.parametrize("answers", [5, [], "x", {"k": 5}, {"k": []}])
def test_malformed_input_responses_are_refused_with_400(served: ServedApp, answers: Any) -> None:
    response = retry(served, None, stateless_call(2, "ask_name"), answers)

    assert (response.status, response.code) == (400, -32602)


def test_clients_that_disconnect_while_they_are_asked_do_not_stop_the_server(
    served: ServedApp,
) -> None:
    session = served.initialize(elicitation={})
    for number in range(20):
        connection = served.start_post(call(number, "ask_name"), session)
        read_until(connection, b"elicitation/create")
        connection.close()

    assert served.still_serves()


def question_id(event: bytes) -> str:
    """The id of the request in an event."""
    id: str = json.loads(event.partition(b"data: ")[2].partition(b"\n")[0])["id"]
    return id


@pytest.mark.parametrize(
    "answer", [{"result": 5}, {"result": {}}, {"error": {"code": 1}}, {"error": None}]
)
def test_a_malformed_answer_to_a_stateful_question_fails_only_its_call(
    served: ServedApp, answer: Any
) -> None:
    session = served.initialize(elicitation={})
    connection = served.start_post(call(1, "ask_name"), {**session, "Connection": "close"})
    id = question_id(read_until(connection, b"}\n\n"))

    assert served.post({"jsonrpc": "2.0", "id": id, **answer}, session).status == 202

    assert b'"isError":true' in read_to_end(connection)


def test_a_client_cannot_answer_a_question_of_another_session(served: ServedApp) -> None:
    mine, theirs = served.initialize(elicitation={}), served.initialize(elicitation={})
    connection = served.start_post(call(1, "ask_name"), {**mine, "Connection": "close"})
    id = question_id(read_until(connection, b"}\n\n"))

    for session, name in ((theirs, "Eve"), ({}, "Eve"), (mine, "Ada")):
        answer = {"action": "accept", "content": {"value": name}}
        response = served.post({"jsonrpc": "2.0", "id": id, "result": answer}, session)
        assert response.status == 202

    assert b"Hello, Ada!" in read_to_end(connection)
