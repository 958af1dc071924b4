"""What counts as a failure: for a tool, for `wrap` and for `read` alike."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from answerback import App, read, wrap

TEXT = [{"type": "text", "text": "gone"}]
# Each form with the message that callers get; None where the form has none.
FAILURES: list[tuple[Any, str | None]] = [
    # Finished replies, however they are spelt.
    ({"isError": True, "content": TEXT}, "gone"),
    ({"is_error": True, "content": TEXT}, "gone"),
    ({"meta": None, "content": TEXT, "structured_content": None, "is_error": True}, "gone"),
    ({"success": False, "message": "gone"}, "gone"),
    ({"success": "false", "message": "gone"}, "gone"),
    ({"success": "no", "error": "gone"}, "gone"),
    ({"success": 0, "message": "gone"}, "gone"),
    ({"success": "false"}, None),
    ({"content": TEXT, "error": {"code": "GONE", "message": "gone"}}, "gone"),
    ({"content": TEXT, "error": "gone", "timestamp": "2026-01-31T12:00:00Z"}, "gone"),
    ({"error": {"code": "GONE", "message": "gone"}, "data": {"a": 1}}, "gone"),
    ({"status": 404, "title": "Not Found", "detail": "gone"}, "gone"),
    ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "gone"}}, "gone"),
    # An error, beside members that say nothing.
    ({"error": "gone"}, "gone"),
    ({"error": True, "message": "gone"}, "gone"),
    ({"error": True, "code": "C", "detail": "gone"}, "gone"),
    ({"error": True}, None),
    ({"error": "gone", "booking_status": False}, "gone"),
    ({"error": "gone", "rows": [], "total": 0, "next": None}, "gone"),
    ({"result": {"error": "gone", "cancel_status": False}}, "gone"),
    # A status that says so, with a message.
    ({"status": "error", "message": "gone"}, "gone"),
    ({"status": "failed", "reason": "gone"}, "gone"),
    ({"state": "FAILED", "msg": "gone", "rows": []}, "gone"),
    ({"result": "failure", "detail": "gone"}, "gone"),
    # Lists in which everything failed.
    ([{"error": "one"}, {"error": "two"}], "one; two"),
    ({"results": [{"error": "one"}, {"success": False, "message": "two"}], "count": 2}, "one; two"),
    # Texts.
    ('{"error": "gone"}', "gone"),
    ('```json\n{"error": "gone"}\n```', "gone"),
    (json.dumps(json.dumps({"error": "gone"})), "gone"),
    ("Traceback (most recent call last):\n  File …\nKeyError: 'gone'", "KeyError: 'gone'"),
    ("Error executing tool add: gone", "Error executing tool add: gone"),
    ("Error calling tool 'add': gone", "Error calling tool 'add': gone"),
    ("ValueError: gone", "ValueError: gone"),
    ("requests.exceptions.HTTPError: 404 gone", "requests.exceptions.HTTPError: 404 gone"),
]
# Records in the shapes of public APIs: something failed, and the reply is right.
RECORDS: list[Any] = [
    # Builds, runs and checks.
    {"id": 7, "status": "failed", "message": "exit 1"},
    {"id": 1, "name": "build", "status": "completed", "conclusion": "failure"},
    {"number": 9, "result": "FAILURE", "building": False, "url": "https://ci.example.org/9"},
    {"uuid": "1", "state": {"name": "COMPLETED", "result": {"name": "FAILED"}}, "build_number": 5},
    {"pipeline_id": "p", "state": "failed", "reason": "timeout", "created_at": "2026-01-31"},
    {"name": "lint", "state": "failure", "description": "2 errors", "target_url": "https://x.org"},
    {"workflow_run_id": 3, "status": "failure", "error": "step 2"},
    {"check_run": {"name": "test", "conclusion": "failure"}},
    {"id": "d1", "state": "ERROR", "errorMessage": "no such module", "createdAt": 1},
    {"deploy_id": "d", "status": "error", "error_message": "no such module"},
    {"buildId": "b", "status": "FAILURE", "startedAt": "2026-01-31", "message": "exit 1"},
    {"job": {"id": 1, "status": "failed", "error": "exit 1"}},
    {"jobs": [{"id": 1, "status": "error", "error": "exit 1"}]},
    {"name": "nightly", "status": "failed", "detail": "exit 1"},
    {"suite": "unit", "passed": 3, "failed": 1, "errors": ["test_a"]},
    {"numFailedTests": 1, "success": False, "testResults": [{"name": "a", "status": "failed"}]},
    {"tests": 4, "failures": 1, "errors": 0, "time": 0.5},
    {"nodeid": "test_a", "outcome": "failed", "message": "assert 1 == 2", "duration": 1},
    # Tasks and runs of agents.
    {"tasks": [{"taskId": "t", "status": "failed", "statusMessage": "no disk"}]},
    {"id": "run_1", "object": "thread.run", "status": "failed", "last_error": {"code": "limit"}},
    {"id": "batch_1", "status": "failed", "errors": {"data": [{"message": "bad line"}]}},
    {"task_id": "t", "state": "FAILURE", "result": None, "traceback": "…"},
    {"dag_run_id": "r", "state": "failed", "note": "retry it"},
    {"execution_id": "e", "status": "FAILED", "error": "States.Timeout", "cause": "late"},
    {"executionArn": "arn:x", "status": "FAILED", "startDate": 1, "error": "States.Timeout"},
    {"JobName": "j", "JobRunState": "FAILED", "ErrorMessage": "no table"},
    {"name": "operations/1", "done": True, "error": {"code": 5, "message": "not found"}},
    {"id": "pred", "status": "failed", "error": "out of memory", "created_at": "2026-01-31"},
    {"queue": "mail", "failed": 3, "error": "smtp refused"},
    {"scan_id": "s", "status": "error", "message": "host down"},
    # Payments, orders and messages.
    {"id": "pi", "object": "payment_intent", "last_payment_error": {"message": "declined"}},
    {"id": "ch", "status": "failed", "failure_message": "card declined", "amount": 5},
    {"payment_id": "p", "status": "FAILED", "reason": "insufficient funds"},
    {"transactionId": "t", "state": "failed", "message": "declined"},
    {"sid": "SM1", "status": "failed", "error_code": 30003, "error_message": "unreachable"},
    {"order_id": "o", "status": "failed", "reason": "out of stock"},
    {"refund": {"id": "r", "status": "failed", "failure_reason": "expired"}},
    {"email": "a@example.org", "event": "bounce", "reason": "no mailbox", "status": "5.1.1"},
    {"webhook_id": "w", "last_status": 500, "error": "timeout"},
    # Pods, hosts and services.
    {"kind": "Pod", "metadata": {"name": "x"}, "status": {"phase": "Failed", "reason": "OOM"}},
    {"name": "x", "state": "failed", "reason": "CrashLoopBackOff"},
    {"type": "Warning", "reason": "BackOff", "message": "again", "involvedObject": {"name": "x"}},
    {"Id": "c", "State": {"Status": "exited", "ExitCode": 1, "Error": "no file"}},
    {"host": "x.org", "success": False, "latency": None, "attempts": 3, "log": ["refused"]},
    {"url": "https://x.org", "up": False, "error": "timeout"},
    {"monitor": "x", "status": "error", "checked": ["a"]},
    {"unit": "nginx.service", "active": "failed", "sub": "failed", "result": "exit-code"},
    {"backup_id": "b", "status": "failed", "message": "no space"},
    {"volume": "v", "state": "error", "attachments": [1]},
    {"cluster": "c", "health": "red", "unassigned": 3, "error": "shard failed"},
    # Data about errors.
    {"error": "high", "rows": [1]},
    {"error": 0.5, "epoch": 3},
    {"error": None, "rows": [1]},
    {"error": "", "id": 3},
    {"errors": 3, "requests": 150},
    {"error_rate": 0.02, "errors": 3},
    {"valid": False, "errors": [{"message": "x is required"}]},
    {"issue": 7, "title": "Error: cannot log in", "state": "open"},
    {"title": "The error of our ways", "author": "x"},
    {"query": "error", "results": [{"title": "Error 404", "url": "https://x.org"}]},
    {"lines": ["ERROR no disk", "INFO done"]},
    {"message": "The last build failed", "author": "x", "sha": "a"},
    {"status": "failed"},
    [{"id": 1, "error": None}, {"id": 2, "error": ""}],
    [{"id": 1, "error": "exit 1"}, {"id": 2, "error": "exit 2"}],
    [{"error": "one"}, {"value": 2}],
    [],
    "Error: the build failed",
    "ERROR no disk\nERROR no disk\nINFO done",
    "TypeError: What It Means and How to Fix It",
    "KeyError: an exception that is raised if a key is missing",
    "Error 404 is a status",
    "The function raises ValueError: see the docs",
    "No results",
]


def sent_by_tool(value: Any, **arguments: str) -> Any:
    app = App("judged")

    @app.tool
    def judged(city: str = "") -> Any:
        return value

    return asyncio.run(app.call("judged", **arguments))


@pytest.mark.parametrize(("value", "message"), FAILURES, ids=repr)
def test_a_certain_failure_is_one_for_a_tool_for_wrap_and_for_read(
    value: Any, message: str | None
) -> None:
    reply = sent_by_tool(value)
    wrapped = asyncio.run(wrap(lambda: value)())
    received = read(value)

    assert reply.error is not None
    assert received.error is not None
    assert wrapped["success"] is False
    if message is not None:
        assert [reply.error.message, wrapped["error"]["message"]] == [message, message]
        assert received.error.message == message


@pytest.mark.parametrize("value", RECORDS, ids=repr)
def test_a_record_about_a_failure_is_data_for_a_tool_for_wrap_and_for_read(value: Any) -> None:
    reply = sent_by_tool(value)
    wrapped = asyncio.run(wrap(lambda: value)())

    assert reply.data == value
    assert wrapped["success"] is True
    assert read(value).ok


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (dict, {"error": "gone", "booking_status": False}),
        (dict[str, Any], {"error": "gone", "booking_status": False}),
        (list, [{"error": "gone"}]),
        (list[dict[str, Any]], [{"error": "gone"}]),
        (str, "ValueError: gone"),
        (str, '{"error": "gone"}'),
    ],
)
def test_a_type_that_declares_no_members_is_judged(annotation: Any, value: Any) -> None:
    def judged():  # type: ignore[no-untyped-def]  # The annotation is a parameter of the test.
        return value

    judged.__annotations__["return"] = annotation
    app = App("judged")
    app.add_tool(judged)

    assert asyncio.run(app.call("judged")).error is not None


def test_values_that_contain_themselves_are_invalid_output() -> None:
    wrapped: dict[str, Any] = {}
    wrapped["result"] = wrapped
    listed: list[Any] = []
    listed.append({"result": listed})

    errors = [sent_by_tool(value).error for value in (wrapped, listed)]

    assert [each.code for each in errors] == ["INVALID_OUTPUT", "INVALID_OUTPUT"]


def test_every_member_beside_the_error_goes_to_its_details() -> None:
    error = sent_by_tool({"error": "gone", "booking_status": False, "path": "/a"}).error

    assert error.details == {"booking_status": False, "path": "/a"}


def test_a_member_that_repeats_an_argument_is_not_data() -> None:
    value = {"error": "no such city", "city": "Olso"}

    assert sent_by_tool(value, city="Olso").error.message == "no such city"
    assert sent_by_tool(value, city="Oslo").data == value


def test_a_code_that_the_table_knows_is_the_code_of_the_failure() -> None:
    errors = [sent_by_tool({"error": "gone", "code": code}).error for code in ("NOT_FOUND", "E_17")]

    assert [each.code for each in errors] == ["NOT_FOUND", "UNKNOWN_ERROR"]
    assert errors[1].details == {"code": "E_17"}


def test_the_log_has_the_traceback_of_which_callers_see_the_last_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 3\nKeyError: 17'

    error = sent_by_tool(trace).error

    assert error.message == "KeyError: 17"
    assert trace in caplog.text


def test_under_direct_an_error_decides_whatever_else_is_there() -> None:
    app = App("judged", contract="direct")

    @app.tool
    def judged() -> Any:
        return {"error": "measured", "temperature": 5}

    reply = asyncio.run(app.call("judged"))

    assert reply.error is not None
    assert (reply.error.message, reply.error.details) == ("measured", {"temperature": 5})
