"""Each reply becomes one event, whichever wire it went by."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest
from tests.records.kept import BOUND, Memory, app_with, events_in, replies_in

from answerback import App, audit
from answerback.records import JSONL, Event, Logging, Records, SQLite
from answerback.records.verify import verify

ROOT = Path(__file__).parent.parent.parent


def test_a_reply_becomes_an_event_with_all_that_is_known_of_it() -> None:
    sink = Memory()
    records = Records(sink)
    app = app_with(records)

    reply = asyncio.run(app.call("add", x=1, y=2))
    records.close()

    (event,) = sink.replies
    assert reply.data == 3
    assert event.event == "mcp_response"
    assert (event.kind, event.tool, event.wire, event.code) == ("tool", "add", "memory", "")
    assert (event.size, bool(event.digest)) == (1, True)
    assert event.arguments is None
    assert event.reply is None


def test_a_masked_failure_is_found_by_the_reference_that_its_caller_read() -> None:
    sink = Memory()
    records = Records(sink)

    reply = asyncio.run(app_with(records).call("fail"))
    records.close()

    (event,) = sink.replies
    assert event.code == "TOOL_EXECUTION_ERROR"
    assert event.reference == reply.error.details["reference"]  # type: ignore[union-attr]


def test_a_reply_with_findings_carries_the_event_name_of_the_seed() -> None:
    sink = Memory()
    records = Records(sink)

    told = "connected to postgres://admin:Zk3vQ9pLw2@db.internal/main"
    asyncio.run(app_with(records).call("echo", text=told))
    records.close()

    (event,) = sink.replies
    assert event.event == "mcp_response_format_issue"
    assert event.findings
    assert b"Zk3vQ9pLw2" not in sink.entries[1].body


def test_arguments_and_content_are_kept_if_asked_and_without_their_secrets() -> None:
    sink = Memory()
    records = Records(sink, arguments=True, content=True)

    told = "postgres://admin:Zk3vQ9pLw2@db.internal/main"
    asyncio.run(app_with(records).call("echo", text=told))
    records.close()

    (event,) = sink.replies
    assert event.arguments is not None
    assert event.reply is not None
    assert json.loads(bytes(event.arguments)) == {"text": "postgres://admin:***@db.internal/main"}
    assert b"***" in bytes(event.reply)
    assert all(b"Zk3vQ9pLw2" not in entry.body for entry in sink.entries)


def test_what_is_too_large_to_keep_is_named_instead() -> None:
    sink = Memory()
    records = Records(sink, arguments=True, content=True)

    asyncio.run(app_with(records).call("echo", text="x" * 100_000))
    records.close()

    (event,) = sink.replies
    assert event.omitted == ("arguments", "reply")
    assert event.size > 100_000


def test_the_digest_is_of_what_was_meant_and_not_of_how_it_was_spaced() -> None:
    from answerback.records.call_record import digest

    assert digest(b'{"x":1,"y":2}') == digest(b'{ "y": 2, "x": 1 }')
    assert digest(b'{"x":1,"y":2}') != digest(b'{"x":2,"y":1}')
    assert digest(b"no json") != digest(b"other")


def test_a_call_that_is_given_up_is_recorded_as_cancelled() -> None:
    sink = Memory()
    records = Records(sink)
    app = App("test", records=records)

    @app.tool
    async def forever() -> int:
        await asyncio.Event().wait()
        return 1

    async def give_up() -> None:
        task = asyncio.ensure_future(app.call("forever"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=BOUND)

    asyncio.run(give_up())
    records.close()

    assert [event.code for event in sink.replies] == ["CANCELLED"]


def test_an_app_without_records_has_nothing_on_the_path() -> None:
    bare = App("bare")

    assert bare.records is None
    assert bare.handlers.tools.__qualname__.startswith("pipeline")


def test_a_sink_alone_is_enough_for_an_app(tmp_path: Path) -> None:
    app = App("test", records=SQLite(tmp_path / "audit.db"))

    asyncio.run(app.call("nothing"))
    assert app.records is not None
    app.records.close()

    assert [event.code for event in replies_in(tmp_path / "audit.db")] == ["TOOL_NOT_FOUND"]


def test_every_sink_gets_every_event(tmp_path: Path) -> None:
    memory = Memory()
    records = Records(memory, SQLite(tmp_path / "a.db"), JSONL(tmp_path / "a.jsonl"))
    app = app_with(records)

    async def calls() -> None:
        for number in range(600):
            await app.call("add", x=number, y=1)

    asyncio.run(calls())
    records.close()

    digests = [event.digest for event in memory.replies]
    assert len(set(digests)) == 600
    for name in ("a.db", "a.jsonl"):
        assert [event.digest for event in replies_in(tmp_path / name)] == digests
        assert verify(str(tmp_path / name)).holds


def test_the_view_can_be_asked_in_sql(tmp_path: Path) -> None:
    records = Records(SQLite(tmp_path / "a.db"))

    asyncio.run(app_with(records).call("add", x=1, y="no"))
    records.close()

    with sqlite3.connect(tmp_path / "a.db") as connection:
        rows = connection.execute("SELECT tool, code FROM replies").fetchall()
    connection.close()
    assert rows == [("add", "INVALID_ARGUMENTS")]


def test_the_log_warns_of_findings_in_the_words_of_the_seed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = Records(Logging())
    app = app_with(records)

    with caplog.at_level(logging.INFO, logger="answerback.records"):
        asyncio.run(app.call("add", x=1, y=2))
        asyncio.run(app.call("echo", text="postgres://admin:Zk3vQ9pLw2@db.internal/main"))
        records.close()

    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage().partition(":")[0] for record in warned] == [
        "MCP response format issues in echo"
    ]
    assert '"tool":"add"' in caplog.text


def _environ(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


SERVED = """
from answerback import App
from answerback.records import SQLite
app = App("served", records=SQLite("audit.db"))

@app.tool
def add(x: int, y: int) -> int:
    return x + y

@app.resource("data://one")
def one() -> str:
    return "one"

@app.prompt
def greet(name: str) -> str:
    return f"Hello {name}"

if __name__ == "__main__":
    app.run()
"""

MCP_LINES: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"x": 7, "y": 3}}},
    {"id": 3, "method": "resources/read", "params": {"uri": "data://one"}},
    {"id": 4, "method": "prompts/get", "params": {"name": "greet", "arguments": {"name": "Ada"}}},
]


@pytest.fixture
def served(tmp_path: Path) -> Path:
    file = tmp_path / "served.py"
    file.write_text(SERVED)
    return file


def test_a_call_from_the_shell_is_recorded_by_the_time_it_ends(served: Path) -> None:
    command = [sys.executable, served.name, "call", "add", "x=7", "y=3"]

    subprocess.run(command, cwd=served.parent, check=True, timeout=BOUND, capture_output=True)

    (event,) = replies_in(served.parent / "audit.db")
    assert (event.wire, event.tool, event.code) == ("call", "add", "")
    assert events_in(served.parent / "audit.db")[-1].event == "records_ended"


def test_a_cgi_request_is_recorded_with_its_caller(served: Path) -> None:
    body = b'{"x":7,"y":3}'
    environ = _environ(
        GATEWAY_INTERFACE="CGI/1.1",
        REQUEST_METHOD="POST",
        PATH_INFO="/functions/add",
        CONTENT_LENGTH=str(len(body)),
        REMOTE_ADDR="192.0.2.7",
    )

    subprocess.run(
        [sys.executable, served.name],
        cwd=served.parent,
        env=environ,
        input=body,
        check=True,
        timeout=BOUND,
        capture_output=True,
    )

    (event,) = replies_in(served.parent / "audit.db")
    assert (event.wire, event.caller) == ("cgi", "192.0.2.7")


def _recorded_over_stdio(served: Path) -> dict[str, Event]:
    """A tool, a resource and a prompt, each by its kind."""
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in MCP_LINES)

    subprocess.run(
        [sys.executable, served.name, "mcp"],
        cwd=served.parent,
        input=lines,
        check=True,
        timeout=BOUND,
        capture_output=True,
    )

    return {event.kind: event for event in replies_in(served.parent / "audit.db")}


def test_stdio_records_tools_resources_and_prompts_with_their_version(served: Path) -> None:
    found = _recorded_over_stdio(served)

    assert set(found) == {"tool", "resource", "prompt"}
    assert {event.version for event in found.values()} == {"2025-06-18"}
    assert (found["tool"].wire, found["tool"].request) == ("mcp", "2")


def test_rest_and_memory_record_the_same_call_alike() -> None:
    sink = Memory()
    records = Records(sink)
    app = app_with(records)

    async def both() -> None:
        await app.call("add", x=7, y=3)
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.post("/functions/add", json={"y": 3, "x": 7})

    asyncio.run(both())
    records.close()

    memory, rest = sink.replies
    assert (memory.wire, rest.wire) == ("memory", "rest")
    assert (memory.tool, memory.digest, memory.size) == (rest.tool, rest.digest, rest.size)


@pytest.mark.parametrize(("path", "batch"), [("/mcp", False), ("/mcp", True), ("/message", False)])
def test_whoever_calls_over_http_is_recorded(path: str, batch: bool) -> None:
    sink = Memory()
    records = Records(sink)
    app = app_with(records)
    params = {"name": "add", "arguments": {"x": 7, "y": 3}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    async def post() -> None:
        transport = httpx.ASGITransport(app.asgi(), client=("192.0.2.7", 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await client.post(path, json=[call] if batch else call)

    asyncio.run(post())
    records.close()

    assert [event.caller for event in sink.replies] == ["192.0.2.7"]


def test_a_resource_is_no_failed_call_whatever_it_begins_with(served: Path) -> None:
    log = "Error: disk full\nTraceback (most recent call last):\n  File 'a.py'"
    leak = "Traceback (most recent call last): postgres://admin:Zk3vQ9pLw2@db.internal/main"
    served.write_text(
        SERVED.replace('return "one"', f"return {log!r}").replace('f"Hello {name}"', repr(leak))
    )
    found = _recorded_over_stdio(served)

    assert found["resource"].findings == ()
    assert {each.rule for each in found["prompt"].findings} == {"AB502"}


def test_every_wire_records_the_same_findings_of_a_reply_and_each_once() -> None:
    sink = Memory()
    records = Records(sink)
    app = app_with(records)
    told = {"text": "postgres://admin:Zk3vQ9pLw2@db.internal/main"}
    frame = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": told},
    }
    versions = [{}, {"MCP-Protocol-Version": "2024-11-05"}, {"MCP-Protocol-Version": "2025-11-25"}]

    async def every() -> None:
        await app.call("echo", **told)
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for dialect in ("mcp", "envelope"):
                accept = {"Accept": f"application/vnd.answerback.{dialect}+json"}
                await client.post("/functions/echo", json=told, headers=accept)
            await client.post("/functions/echo", json=told)
            accept = {"Accept": "application/json, text/event-stream"}
            for version in versions:
                await client.post("/mcp", json=frame, headers=accept | version)

    asyncio.run(every())
    records.close()

    found = [[(each.rule, each.pointer) for each in event.findings] for event in sink.replies]
    assert found == [[("AB502", "/data")]] * 7
    assert {event.wire for event in sink.replies} == {"memory", "rest", "mcp"}


def test_audit_gives_the_response_back_and_warns_of_its_issues(
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


def test_seed_000_audit_misses_all_that_a_response_of_another_form_lacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    audit("myTool", lambda args: {"ok": True, "data": args})({"id": 7})
    audit("mcp", lambda: {"content": [{"type": "text", "text": "started"}]})()

    assert caplog.messages == [
        "MCP response format issues in myTool: "
        "['Missing success field', 'Missing content array', 'Missing timestamp']"
    ]


def test_audit_takes_a_name_records_or_both_before_a_function_or_beside_it() -> None:
    sink = Memory()
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


def test_audit_keeps_what_it_is_given_a_sink_for(tmp_path: Path) -> None:
    @audit("named", records=JSONL(tmp_path / "audit.jsonl"))
    def bare() -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "ok"}]}

    bare()

    assert bare.__name__ == "bare"


@pytest.mark.parametrize(
    "wrong",
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
def test_audit_refuses_what_it_cannot_use_before_any_call(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"audit takes|must be"):
        wrong()


def test_audit_with_records_keeps_every_response_and_every_exception() -> None:
    sink = Memory()
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


Serve = Callable[..., Any]


def test_serve_records_every_worker_in_one_file(serve: Serve, served: Path) -> None:
    served.write_text(SERVED.replace(', records=SQLite("audit.db")', ""))
    audit_db = served.parent / "served.db"

    with serve(served, "--workers", "2", "--audit", str(audit_db)) as server:
        for number in range(40):
            body = {"x": number, "y": 1}
            httpx.post(f"{server.url}/functions/add", json=body).raise_for_status()
    verdict = verify(str(audit_db))

    replies = replies_in(audit_db)
    assert verdict.holds
    assert all(head.ended for head in verdict.heads)
    assert [event.wire for event in replies] == ["rest"] * 40


def test_one_server_has_recorded_every_call_once_it_has_drained(serve: Serve, served: Path) -> None:
    served.write_text(SERVED.replace(', records=SQLite("audit.db")', ""))
    audit_db = served.parent / "served.db"

    with serve(served, "--audit", str(audit_db), "--audit-keep", "arguments") as server:
        for number in range(20):
            httpx.post(f"{server.url}/functions/add", json={"x": number, "y": 1})

    replies = replies_in(audit_db)
    assert len(replies) == 20
    assert all(event.arguments is not None for event in replies)
    assert verify(str(audit_db)).heads[0].ended


@pytest.mark.parametrize("name", ["served.db", "served.jsonl"])
def test_a_file_that_is_moved_while_two_workers_write_it_loses_nothing(
    serve: Serve, served: Path, name: str
) -> None:
    served.write_text(SERVED.replace(', records=SQLite("audit.db")', ""))
    file = served.parent / name
    moved: list[Path] = []

    with serve(served, "--workers", "2", "--audit", str(file)) as server:
        for number in range(90):
            httpx.post(f"{server.url}/functions/add", json={"x": number, "y": 1})
            # The workers write while this goes on, so the move may come in the middle of a batch.
            if number in (29, 59):
                wait_for_records(file)
                moved.append(file.rename(file.with_name(f"{number}-{name}")))

    files = [*moved, file]
    assert sum(len(replies_in(each)) for each in files) == 90
    assert [verify(str(each)).broken for each in files] == ["", "", ""]


def wait_for_records(file: Path) -> None:
    """A worker makes the file anew only when it has something to write."""
    until = monotonic() + BOUND
    while not file.exists() or not replies_in(file):
        assert monotonic() < until
