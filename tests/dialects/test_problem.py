"""The dialect problem: RFC 9457 problem details."""

from __future__ import annotations

import msgspec
import pytest

from answerback.contract import STANDARD
from answerback.core.reply import Error, Reply, failure, success
from answerback.core.shape import RESULT
from answerback.dialects import HttpReply, MalformedReply, problem, rest
from answerback.errors import NotFound

PROBLEM = "application/problem+json"


def test_an_error_is_written_as_problem_details() -> None:
    details = {"city": "Atlantis"}
    error = Error.of(NotFound("no such city", code="CITY_UNKNOWN", details=details, hint="sink"))

    found = problem.write(Reply(error=error), RESULT, STANDARD)

    assert (found.status, found.media_type) == (404, PROBLEM)
    assert found.header("X-Error-Code") == "CITY_UNKNOWN"
    assert msgspec.json.decode(found.body) == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "no such city",
        "code": "CITY_UNKNOWN",
        "retryable": False,
        "details": {"city": "Atlantis"},
        "hint": "sink",
    }


def test_a_success_is_written_and_read_as_in_rest() -> None:
    found = problem.write(success(data=10), RESULT, STANDARD)

    assert found == rest.write(success(data=10), RESULT, STANDARD)
    assert problem.read(found, RESULT).data == 10


def test_a_plain_error_is_read_as_in_rest() -> None:
    found = problem.read(rest.write(failure("no", code="CONFLICT"), RESULT, STANDARD))

    assert found.error == Error("CONFLICT", "no")


def test_additional_members_of_another_servers_problem_are_its_details() -> None:
    body = b'{"type":"https://example.com/credit","title":"No credit","balance":30}'

    found = problem.read(HttpReply(403, body, f"{PROBLEM}; charset=utf-8"))

    assert found.error == Error("FORBIDDEN", "No credit", {"balance": 30})


@pytest.mark.parametrize("body", [b"", b"[]", b'{"detail":5}', b'{"code":5}'])
def test_a_malformed_problem_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedReply):
        problem.read(HttpReply(400, body, PROBLEM))
