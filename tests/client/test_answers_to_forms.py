"""Answers of `elicit` to a server's form: only those that fit the form are accepted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.canned_server import command

from answerback import App, Context, connect
from answerback.client import ElicitationRequest

PROPERTIES = {
    "name": {"type": "string"},
    "nights": {"type": "integer"},
    "price": {"type": "number", "default": 1.5},
    "size": {"type": "string", "enum": ["S", "L"]},
    "sure": {"type": "boolean"},
    "extras": {"type": "array", "items": {"type": "string", "enum": ["bed", "food"]}},
}
FORM = {"type": "object", "properties": PROPERTIES, "required": ["name", "price"]}


def asked(answer: Any, version: str) -> tuple[Any, list[Any]]:
    """The reply of a call that asks for the form, and the answers that reached the tool."""
    app, received = App("hotel"), list[Any]()

    @app.tool
    async def book(ctx: Context) -> str:
        """Book a room."""
        received.append(await ctx.elicit("Which room?", FORM))
        return "booked"

    def elicit(request: ElicitationRequest) -> Any:
        return answer

    with connect(app, version=version, elicit=elicit) as server:
        return server.call("book"), received


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ({}, "name"),
        (True, "name"),
        ({"action": "accept", "content": {"nights": 3}}, "name"),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
        ({"name": "Ada", "nights": "three"}, "nights"),
        ({"name": "Ada", "nights": 1.5}, "nights"),
        ({"name": "Ada", "nights": True}, "nights"),
        ({"name": "Ada", "size": "XL"}, "size"),
        ({"name": "Ada", "sure": "yes"}, "sure"),
        ({"name": "Ada", "extras": "bed"}, "extras"),
    ],
)
def test_an_answer_that_does_not_fit_the_form_is_not_sent(
    answer: Any, field: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply, received = asked(answer, version)

    assert received == []
    assert not reply.ok
    [record] = [each for each in caplog.records if each.name == "answerback.client"]
    assert repr(field) in record.getMessage()


@pytest.mark.parametrize(
    "answer",
    [
        {"name": "Ada"},
        {"name": "Ada", "nights": 3, "price": 2, "size": "L", "sure": False, "extras": ["bed"]},
        {"name": "Ada", "nights": 3.0},
    ],
)
def test_an_answer_that_fits_the_form_is_sent_with_its_defaults(answer: Any, version: str) -> None:
    reply, received = asked(answer, version)

    assert reply.ok
    assert received == [{"price": 1.5, **answer}]


@pytest.mark.parametrize("answer", [None, False, "cancel", "decline"])
def test_a_form_that_is_declined_needs_no_fields(answer: Any, version: str) -> None:
    reply, received = asked(answer, version)

    assert received == []
    assert reply.error.code == "INPUT_DECLINED"


@pytest.mark.parametrize(
    "schema", [[1], {"required": 5}, {"required": [["a"]]}, {"properties": ["name"]}]
)
def test_a_malformed_form_is_a_failed_reply_and_nobody_is_asked(schema: Any) -> None:
    params = {"message": "Which room?", "requestedSchema": schema}
    question = {"method": "elicitation/create", "params": params}
    answer = {"resultType": "input_required", "inputRequests": {"1": question}}
    requests: list[ElicitationRequest] = []

    with connect(command(call=answer), elicit=requests.append) as server:
        reply = server.call("act")

    assert reply.error is not None
    assert reply.error.code == "INPUT_REQUIRED"
    assert requests == []
