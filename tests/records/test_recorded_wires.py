"""Every wire records its calls, with the client, the MCP version and the same findings."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest
from tests.records.support import TIMEOUT, MemorySink, app_with, events_in, replies_in

from answerback.records import Event, Records
from answerback.records.hash_chain import verify
from answerback.records.reader import CannotRead


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


def test_a_call_from_the_command_line_is_recorded_before_the_process_exits(served: Path) -> None:
    command = [sys.executable, served.name, "call", "add", "x=7", "y=3"]

    subprocess.run(command, cwd=served.parent, check=True, timeout=TIMEOUT, capture_output=True)

    (event,) = replies_in(served.parent / "audit.db")
    assert (event.wire, event.tool, event.code) == ("call", "add", "")
    assert events_in(served.parent / "audit.db")[-1].event == "records_ended"


def test_a_cgi_request_is_recorded_with_the_address_of_the_client(served: Path) -> None:
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
        timeout=TIMEOUT,
        capture_output=True,
    )

    (event,) = replies_in(served.parent / "audit.db")
    assert (event.wire, event.caller) == ("cgi", "192.0.2.7")


def _recorded_over_stdio(served: Path) -> dict[str, Event]:
    """Call a tool, a resource and a prompt over stdio; return their events by kind."""
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in MCP_LINES)

    subprocess.run(
        [sys.executable, served.name, "mcp"],
        cwd=served.parent,
        input=lines,
        check=True,
        timeout=TIMEOUT,
        capture_output=True,
    )

    return {event.kind: event for event in replies_in(served.parent / "audit.db")}


def test_stdio_records_tools_resources_and_prompts_with_the_mcp_version(served: Path) -> None:
    found = _recorded_over_stdio(served)

    assert set(found) == {"tool", "resource", "prompt"}
    assert {event.version for event in found.values()} == {"2025-06-18"}
    assert (found["tool"].wire, found["tool"].request) == ("mcp", "2")


def test_rest_and_memory_record_the_same_call_with_equal_digest_and_size() -> None:
    sink = MemorySink()
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
def test_the_address_of_an_http_client_is_recorded(path: str, batch: bool) -> None:
    sink = MemorySink()
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


def test_the_text_of_a_resource_is_not_taken_for_a_failed_call(served: Path) -> None:
    log = "Error: disk full\nTraceback (max_waiting recent call last):\n  File 'a.py'"
    leak = "Traceback (max_waiting recent call last): postgres://admin:Zk3vQ9pLw2@db.internal/main"
    served.write_text(
        SERVED.replace('return "one"', f"return {log!r}").replace('f"Hello {name}"', repr(leak))
    )
    found = _recorded_over_stdio(served)

    assert found["resource"].findings == ()
    assert {each.rule for each in found["prompt"].findings} == {"AB502"}


def test_every_wire_records_the_same_findings_once() -> None:
    sink = MemorySink()
    records = Records(sink)
    app = app_with(records)
    arguments = {"text": "postgres://admin:Zk3vQ9pLw2@db.internal/main"}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": arguments},
    }
    versions = [{}, {"MCP-Protocol-Version": "2024-11-05"}, {"MCP-Protocol-Version": "2025-11-25"}]

    async def every() -> None:
        await app.call("echo", **arguments)
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for dialect in ("mcp", "envelope"):
                accept = {"Accept": f"application/vnd.answerback.{dialect}+json"}
                await client.post("/functions/echo", json=arguments, headers=accept)
            await client.post("/functions/echo", json=arguments)
            accept = {"Accept": "application/json, text/event-stream"}
            for version in versions:
                await client.post("/mcp", json=message, headers=accept | version)

    asyncio.run(every())
    records.close()

    found = [[(each.rule, each.pointer) for each in event.findings] for event in sink.replies]
    assert found == [[("AB502", "/data")]] * 7
    assert {event.wire for event in sink.replies} == {"memory", "rest", "mcp"}


Serve = Callable[..., Any]


def _add(url: str, number: int) -> httpx.Response:
    """Call `add` on a connection of its own, so that any of the workers may get it."""
    # Not verified, because reading the certificates takes longer than the call.
    return httpx.post(f"{url}/functions/add", json={"x": number, "y": 1}, verify=False)


def test_all_workers_of_a_server_record_to_one_file(serve: Serve, served: Path) -> None:
    served.write_text(SERVED.replace(', records=SQLite("audit.db")', ""))
    audit_db = served.parent / "served.db"

    with serve(served, "--workers", "2", "--audit", str(audit_db)) as server:
        for number in range(40):
            _add(server.url, number).raise_for_status()
    verdict = verify(str(audit_db))

    replies = replies_in(audit_db)
    assert verdict.holds
    assert all(head.ended for head in verdict.heads)
    assert [event.wire for event in replies] == ["rest"] * 40


def test_a_server_has_recorded_every_call_when_it_exits(serve: Serve, served: Path) -> None:
    served.write_text(SERVED.replace(', records=SQLite("audit.db")', ""))
    audit_db = served.parent / "served.db"

    with serve(served, "--audit", str(audit_db), "--audit-keep", "arguments") as server:
        for number in range(20):
            _add(server.url, number)

    replies = replies_in(audit_db)
    assert len(replies) == 20
    assert all(event.arguments is not None for event in replies)
    assert verify(str(audit_db)).heads[0].ended


@pytest.mark.parametrize("name", ["served.db", "served.jsonl"])
def test_no_record_is_lost_when_the_file_of_two_workers_is_moved(
    serve: Serve, served: Path, name: str
) -> None:
    served.write_text(SERVED.replace(', records=SQLite("audit.db")', ""))
    file = served.parent / name
    moved: list[Path] = []

    with serve(served, "--workers", "2", "--audit", str(file)) as server:
        for number in range(90):
            _add(server.url, number)
            # The workers write meanwhile, so the file may be moved in the middle of a batch.
            if number in (29, 59):
                wait_for_records(file)
                moved.append(file.rename(file.with_name(f"{number}-{name}")))

    files = [*moved, file]
    assert sum(len(replies_in(each)) for each in files) == 90
    assert [verify(str(each)).broken for each in files] == ["", "", ""]


def wait_for_records(file: Path) -> None:
    """Wait until a worker has created the file and written a record to it."""
    until = monotonic() + TIMEOUT
    while True:
        # A worker may have created the file and not its table yet.
        with suppress(CannotRead):
            if replies_in(file):
                return
        assert monotonic() < until
