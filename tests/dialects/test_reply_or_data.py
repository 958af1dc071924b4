"""Every reader of a foreign reply takes it for the same dialect, and reads the same error code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest
from starlette.responses import Response
from tests.records.support import MemorySink

from answerback import audit, failure, success, validate
from answerback.contract import ENVELOPE
from answerback.core.shape import BARE
from answerback.dialects import write
from answerback.middleware import asgi
from answerback.records import Records
from answerback.rules.finding import PNG
from answerback.testing import DisplayClient

TEXT = {"content": [{"type": "text", "text": "started"}]}
IMAGE = {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
WHEN = {"timestamp": "2026-01-31T12:00:00Z"}
CODED = {"_meta": {"answerback/error": {"code": "NOT_FOUND"}}}


def over_mcp(reply: Any) -> Any:
    """The MCP result that the `envelope` contract sends."""
    return msgspec.json.decode(write(reply, "mcp", BARE, ENVELOPE).body)


def checked_by_middleware(reply: Any) -> MemorySink:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = msgspec.json.encode(reply)
        await Response(body, media_type="application/json")(scope, receive, send)

    sink = MemorySink()
    records = Records(sink)

    async def ask() -> None:
        transport = httpx.ASGITransport(asgi.ValidReplies(app, records=records))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            await asyncio.wait_for(client.post("/tools/x"), 60)

    asyncio.run(ask())
    records.close()
    return sink


def checked_by_audit(reply: Any) -> MemorySink:
    sink = MemorySink()
    records = Records(sink)
    audit("x", lambda: reply, records=records)()
    records.close()
    return sink


Check = Callable[[Any], MemorySink]
EACH = pytest.mark.parametrize("check", [checked_by_middleware, checked_by_audit])


@EACH
@pytest.mark.parametrize(
    ("reply", "rules"),
    [
        ({"success": True, "isError": False, **TEXT}, []),
        ({"success": True, "isError": False, **IMAGE}, []),
        (over_mcp(success("started", {"id": 7})), ["AB313", "AB313"]),
        (over_mcp(failure("no such city", code="NOT_FOUND")), []),
        (TEXT, []),
        ({"success": True, **WHEN, **TEXT}, []),
        ({"success": True, **WHEN}, ["AB102"]),
        ({"isError": False}, ["AB102"]),
        ({"ok": True, **WHEN}, ["AB101", "AB102"]),
    ],
)
def test_the_rules_find_the_same_whoever_asks_them(
    check: Check, reply: Any, rules: list[str]
) -> None:
    (event,) = check(reply).replies

    assert sorted(each.rule for each in event.findings) == rules
    assert sorted(each.rule for each in validate(reply)) == rules


@EACH
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ({"isError": True, **TEXT, **CODED}, "NOT_FOUND"),
        (over_mcp(failure("no such city", code="NOT_FOUND")), "NOT_FOUND"),
        (
            {"success": False, **WHEN, **TEXT, "error": {"code": "GONE", "message": "it is gone"}},
            "GONE",
        ),
        ({"isError": True, **TEXT}, "UNKNOWN_ERROR"),
        ({"isError": False, **TEXT}, ""),
        ({"success": True, **WHEN, **TEXT, "data": {"error": {"code": "GONE"}}}, ""),
    ],
)
def test_the_error_code_of_a_reply_is_recorded_whoever_records_it(
    check: Check, reply: Any, code: str
) -> None:
    (event,) = check(reply).replies

    assert event.code == code


def test_an_error_that_is_null_is_no_failure() -> None:
    (event,) = checked_by_audit({"success": True, **WHEN, **TEXT, "error": None}).replies

    assert event.code == ""


def test_an_error_without_success_beside_it_is_a_failure() -> None:
    (event,) = checked_by_audit({"error": "no such city"}).replies

    assert event.code == "UNKNOWN_ERROR"


def test_a_test_client_reads_an_mcp_result_with_an_envelopes_members_as_a_result() -> None:
    client = DisplayClient()

    client.process_response({"success": True, "isError": True, **TEXT, **CODED})

    assert client.displayed_error is True
    assert client.error_code == "NOT_FOUND"
