"""`read` understands the proposed `_meta["io.modelcontextprotocol/toolFailure"]`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from answerback import App, NotFound, RateLimited, Unauthenticated, failure, read
from answerback.contract import STANDARD
from answerback.dialects.returned_value import class_of
from answerback.errors import CODES

KEY = "io.modelcontextprotocol/toolFailure"
WRITING = STANDARD.derive(name="proposed", tool_failure=True)


def failed(text: str = "the queue is full", /, **members: Any) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {KEY: {"correlationId": "c-1", **members}},
    }


def test_a_failure_has_the_code_the_advice_and_the_reference_of_the_server() -> None:
    result = failed(
        **{"class": "reliability", "code": "QUEUE_FULL", "retryable": True},
        agentGuidance="wait until the nightly run has ended",
    )

    reply = read(result)

    assert reply.error is not None
    assert reply.error.code == "QUEUE_FULL"
    assert reply.error.message == "the queue is full"
    assert reply.error.retryable is True
    assert reply.error.hint == "wait until the nightly run has ended"
    assert reply.error.details == {"reference": "c-1"}
    assert reply.findings == ()


@pytest.mark.parametrize(
    ("failure_class", "status"), [("capability", 400), ("reliability", 503), ("governance", 403)]
)
def test_an_unknown_code_has_the_status_of_its_class(failure_class: str, status: int) -> None:
    reply = read(failed(**{"class": failure_class, "code": "quota/exceeded"}))

    assert reply.error is not None
    assert reply.error.code == "QUOTA_EXCEEDED"
    assert reply.error.row.status == status


def test_a_known_code_keeps_its_own_status() -> None:
    reply = read(failed(**{"class": "capability", "code": "NOT_FOUND"}))

    assert reply.error is not None
    assert (reply.error.row.status, reply.error.kind) == (404, None)


def test_the_moment_to_try_again_becomes_seconds() -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=90)).isoformat()

    reply = read(failed(code="RATE_LIMITED", retryNotBefore=soon))

    assert reply.error is not None
    assert 60 <= reply.error.details["retry_after"] <= 90


@pytest.mark.parametrize(
    "members",
    [
        {"retryNotBefore": "soon"},
        {"retryNotBefore": 17},
        {"retryNotBefore": "9999-12-31T00:00:00Z"},
        {"class": 7, "code": None, "retryable": "yes", "agentGuidance": 3, "correlationId": []},
        {"code": "🙂"},
    ],
)
def test_malformed_members_are_left_out(members: dict[str, Any]) -> None:
    reply = read(failed(**members))

    assert reply.error is not None
    assert reply.error.code == "UNKNOWN_ERROR"
    assert "retry_after" not in (reply.error.details or {})
    assert (reply.error.retryable, reply.error.hint) == (None, None)


def test_the_data_of_a_failure_stays_among_its_details() -> None:
    result = failed(code="QUEUE_FULL") | {"structuredContent": {"waiting": 7}}

    reply = read(result)

    assert reply.error is not None
    assert reply.error.details == {"reference": "c-1", "waiting": 7}


def test_a_failure_of_answerback_is_read_from_its_own_key() -> None:
    result = failure("no city", code="CITY_UNKNOWN", kind=NotFound).to("mcp")
    result["_meta"][KEY] = {"class": "governance", "code": "OTHER", "correlationId": "c-1"}

    reply = read(result)

    assert reply.error is not None
    assert reply.error.code == "CITY_UNKNOWN"


def call(error: Exception) -> dict[str, Any]:
    app = App("failing", contract=WRITING)

    @app.tool
    def fail() -> int:
        raise error

    sent: dict[str, Any] = app.write(asyncio.run(app.call("fail")), "mcp")
    return sent


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            NotFound("no city", hint="try Oslo"),
            {"class": "capability", "code": "NOT_FOUND", "agentGuidance": "try Oslo"},
        ),
        (Unauthenticated("log in"), {"class": "governance", "code": "UNAUTHENTICATED"}),
        (RateLimited("slowly"), {"class": "reliability", "code": "RATE_LIMITED"}),
    ],
)
def test_a_contract_can_write_it(error: Exception, expected: dict[str, Any]) -> None:
    found = call(error)["_meta"][KEY]

    assert found.pop("correlationId")
    assert found.pop("retryable") is isinstance(error, RateLimited)
    assert found == expected


def test_the_reference_of_a_masked_exception_is_the_id_for_the_operator() -> None:
    reply = failure("it broke", code="TOOL_EXECUTION_ERROR", details={"reference": "ref-7"})

    sent = App("a", contract=WRITING).write(reply, "mcp")

    assert sent["_meta"][KEY]["correlationId"] == "ref-7"


def test_the_seconds_to_wait_become_a_moment() -> None:
    reply = failure("slowly", kind=RateLimited, details={"retry_after": 60})

    sent = App("a", contract=WRITING).write(reply, "mcp")

    moment = datetime.fromisoformat(sent["_meta"][KEY]["retryNotBefore"])
    assert moment == reply.timestamp + timedelta(seconds=60)


def test_without_the_option_nothing_is_written() -> None:
    assert KEY not in failure("no").to("mcp")["_meta"]


def test_each_code_has_a_class() -> None:
    classes = {code: class_of(failure("no", code=code).error) for code in CODES}  # type: ignore[arg-type]  # a failure has one

    assert set(classes.values()) == {"capability", "reliability", "governance"}
    assert classes["FORBIDDEN"] == "governance"
    assert classes["UNKNOWN_ERROR"] == "reliability"
    assert classes["INVALID_ARGUMENTS"] == "capability"
