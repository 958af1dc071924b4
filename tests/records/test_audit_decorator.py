"""The decorator `audit`: checks and records the replies of any function."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.records.support import TIMEOUT, MemorySink

from answerback import audit
from answerback.records import Records, SQLite


def test_audit_returns_the_response_unchanged_and_logs_its_issues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @audit
    def bare() -> dict[str, Any]:
        return {"success": False, "timestamp": "2026-01-31T12:00:00Z", "content": []}

    @audit(name="named")
    async def later() -> dict[str, Any]:
        return {"success": True, "content": [{"type": "text", "text": "ok"}]}

    with caplog.at_level(logging.WARNING, logger="answerback.records"):
        assert bare()["success"] is False
        assert asyncio.run(later())["success"] is True

    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("MCP response format issues in bare:")
    assert "Empty content array" in first
    assert "Error response missing error object" in first
    assert second == "MCP response format issues in named: ['Missing timestamp']"
    assert caplog.records[0].__dict__["event"]["event"] == "mcp_response_format_issue"


def test_seed_000_audit_logs_every_missing_member_of_a_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    audit("myTool", lambda args: {"ok": True, "data": args})({"id": 7})
    audit("mcp", lambda: {"content": [{"type": "text", "text": "started"}]})()

    assert caplog.messages == [
        "MCP response format issues in myTool: "
        "['Missing success field', 'Missing content array', 'Missing timestamp']"
    ]


def test_audit_accepts_a_name_and_records_in_each_of_its_forms() -> None:
    sink = MemorySink()
    records = Records(sink)
    reply = {"content": [{"type": "text", "text": "ok"}]}

    def bare() -> dict[str, Any]:
        return reply

    async def later() -> dict[str, Any]:
        return reply

    forms = [
        audit(records)(bare),
        audit(records=records)(bare),
        audit("one", records=records)(bare),
        audit("two", bare, records=records),
        audit(name="three", records=records)(bare),
    ]

    assert [form() for form in forms] == [reply] * 5
    assert asyncio.run(audit("four", later, records=records)()) == reply
    assert asyncio.run(audit("five", lambda: later(), records=records)()) == reply
    records.close()
    names = [event.tool for event in sink.replies]
    assert names == ["bare", "bare", "one", "two", "three", "four", "five"]


def test_audit_accepts_a_sink_as_its_records() -> None:
    sink = MemorySink()

    @audit("named", records=sink)
    def bare() -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "ok"}]}

    bare()

    assert bare.__name__ == "bare"
    assert sink.written.wait(TIMEOUT)
    assert [event.tool for event in sink.replies] == ["named"]


@pytest.mark.parametrize(
    "wrong",
    # The type checker is silenced because each of these calls is wrong on purpose.
    [
        lambda: audit(7),  # type: ignore[call-overload]
        lambda: audit("name", "name"),  # type: ignore[call-overload]
        lambda: audit("name", name="other"),
        lambda: audit(name=7),  # type: ignore[call-overload]
        lambda: audit(records="audit.db"),  # type: ignore[call-overload]
        lambda: audit(records=Path("audit.db")),  # type: ignore[call-overload]
        lambda: audit({1}),  # type: ignore[call-overload]
        lambda: audit("name")("name"),  # type: ignore[arg-type]
        lambda: audit("name", lambda: None, records=SQLite),  # type: ignore[call-overload]
    ],
)
def test_audit_refuses_wrong_arguments_before_any_call(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"audit takes|must be"):
        wrong()


def test_audit_with_records_records_every_response_and_every_exception() -> None:
    sink = MemorySink()
    records = Records(sink)

    @audit(records=records)
    def half(x: int) -> dict[str, Any]:
        if x % 2:
            raise ValueError(x)
        return {"content": [{"type": "text", "text": str(x // 2)}]}

    half(4)
    with pytest.raises(ValueError, match="5"):
        half(5)
    records.close()

    assert [event.code for event in sink.replies] == ["", "ValueError"]
