"""Seed 004: best practices 5 to 7, and its migration checklist on a legacy handler."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, TypedDict

import pytest
from tests.resilience.manual_clock import ManualClock

from answerback import App, ToolError, validate
from answerback.contract import STANDARD
from answerback.resilience import Breaker, Retry


class Weather(TypedDict):
    temperature: float


class Entity(TypedDict):
    name: str


def test_seed_004_best_practice_5_data_is_sent_in_both_forms() -> None:
    app = App("weather")

    @app.tool
    def weather() -> Weather:
        return {"temperature": 22.5}

    found = asyncio.run(app.call("weather")).to("mcp")

    assert found["structuredContent"] == {"temperature": 22.5}
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_seed_004_best_practice_6_retry_with_backoff_is_one_line(failures: int) -> None:
    clock = ManualClock()
    left = [RuntimeError("transient") for _ in range(failures)]

    @Retry(attempts=3, on=Exception, clock=clock)
    async def operation() -> str:
        if left:
            raise left.pop()
        return "done"

    result = asyncio.run(operation())

    assert result == "done"
    assert [int(each) for each in clock.waits] == [2**attempt for attempt in range(failures)]
    assert all(0 <= each - int(each) < 1 for each in clock.waits)


def test_seed_004_best_practice_6_the_last_error_is_thrown_without_a_wait_after_it() -> None:
    clock = ManualClock()
    errors = [RuntimeError("first"), RuntimeError("second"), RuntimeError("third")]

    async def operation() -> None:
        raise errors.pop(0)

    with pytest.raises(RuntimeError, match="third"):
        asyncio.run(Retry(attempts=3, on=Exception, clock=clock).call(operation))

    assert errors == []
    assert len(clock.waits) == 2


def test_seed_004_best_practice_7_the_circuit_breaker_is_one_line() -> None:
    clock = ManualClock()
    app = App("weather", contract=STANDARD.derive(hint_in_text=False))
    breaker = Breaker("weather of seed 004", failures=3, counts=Exception, clock=clock)
    runs: list[int] = []

    @app.tool(breaker=breaker)
    def weather() -> str:
        runs.append(1)
        raise RuntimeError("upstream")

    logging.disable()
    replies = [asyncio.run(app.call("weather")).to("mcp") for _ in range(4)]
    logging.disable(logging.NOTSET)
    open_reply = replies[3]
    open_reply.pop("_meta")

    assert len(runs) == 3
    assert open_reply == {
        "isError": True,
        "content": [{"type": "text", "text": "Service temporarily unavailable"}],
    }


def test_seed_004_best_practice_7_errors_are_thrown_again_and_a_success_resets_the_count() -> None:
    breaker = Breaker("calls of seed 004", failures=3, counts=Exception, clock=ManualClock())

    def fail() -> None:
        raise RuntimeError("upstream")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="upstream"):
            breaker.call(fail)
    breaker.call(dict)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="upstream"):
            breaker.call(fail)

    assert breaker.state == "closed"


def legacy(name: str) -> dict[str, Any]:
    """A handler with the first and the fourth issue of the checklist: errors are JSON in a text."""
    if not name:
        error = {"code": "ENTITY_NOT_FOUND", "message": "Entity not found", "details": {"id": 7}}
        return {
            "content": [{"type": "text", "text": json.dumps({"success": False, "error": error})}]
        }
    return {"content": [{"type": "text", "text": json.dumps({"success": True, "name": name})}]}


def test_seed_004_checklist_a_legacy_handler_fails_as_an_error_once_an_app_serves_it() -> None:
    before = validate(legacy(""))
    app = App("legacy")
    app.tool(legacy)
    found = asyncio.run(app.call("legacy", name="")).to("mcp")

    assert "AB202" in {each.rule for each in before}
    assert found["isError"] is True
    assert found["content"] == [{"type": "text", "text": "Entity not found"}]


def test_seed_004_checklist_the_mended_handler_has_all_five_points() -> None:
    app = App("mended")

    @app.tool
    def entity(name: str) -> Entity:
        if not name:
            raise ToolError("Entity not found", code="ENTITY_NOT_FOUND", details={"id": 7})
        return {"name": name}

    failed = asyncio.run(app.call("entity", name="")).to("mcp")
    sent = asyncio.run(app.call("entity", name="tea")).to("mcp")

    assert failed["isError"] is True
    assert failed["content"] == [{"type": "text", "text": "Entity not found"}]
    assert failed["_meta"]["answerback/error"]["code"] == "ENTITY_NOT_FOUND"
    assert sent["structuredContent"] == {"name": "tea"}
    assert app.tools["entity"].output_schema["required"] == ["name"]  # type: ignore[index]  # typed
    assert not validate(sent)
