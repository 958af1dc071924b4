"""Requests that certainly did not run are sent again, whatever the tool; no effect is doubled."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.client.conftest import STDIO, http_server
from tests.client.faulty_http import Faulty, faulty
from tests.client.test_faults import wait_until_gone

from answerback import connect


def wait_until_ended(pid: int) -> bool:
    """Whether all threads of a process end; until then its end of the pipe is open."""
    until = time.monotonic() + 60
    while wait_until_gone(pid) and time.monotonic() < until:
        try:
            if len(os.listdir(f"/proc/{pid}/task")) == 1:
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
    return False


def answer(server: Faulty, asked: dict[str, Any]) -> None:
    server.send_result(asked, {"content": []})


def test_calls_that_find_their_session_lost_together_each_run_once() -> None:
    server = faulty(answer)

    async def run(url: str) -> list[Any]:
        async with connect(url, timeout=60) as remote:
            await remote.tools()
            server.sessions.append("another")
            return list(await asyncio.gather(*(remote.call("unsafe") for _ in range(5))))

    with http_server(server) as url:
        replies = asyncio.run(run(url))

    assert [reply.error for reply in replies] == [None] * 5
    assert server.calls == ["unsafe"] * 5


def test_a_server_that_loses_every_session_gets_the_call_twice_and_never_runs_it() -> None:
    class Forgetful(faulty(answer)):  # type: ignore[misc] # a class that is made for this test
        refused = 0

        def do_POST(self) -> None:  # noqa: N802 -- the name that http.server calls
            if int(self.headers["content-length"]) and self.headers.get("mcp-session-id"):
                body = self.rfile.read(int(self.headers["content-length"]))
                is_call = b"tools/call" in body
                type(self).refused += is_call
                self.send_body(404 if is_call else 202)
                return
            super().do_POST()

    with http_server(Forgetful) as url, connect(url, timeout=60) as remote:
        reply = remote.call("unsafe")

    assert reply.error is not None
    assert (reply.error.code, reply.error.details) == ("UNAVAILABLE", {"may_have_run": False})
    assert (Forgetful.refused, Forgetful.calls) == (2, [])


def test_a_call_goes_on_though_the_server_closes_its_stream_twice() -> None:
    """Each stream is resumed by the id of the last event, and the call is sent once."""
    resumed: list[str] = []
    seen: list[float] = []
    asked_for: list[Any] = []

    def event(number: int, **message: Any) -> bytes:
        data = json.dumps({"jsonrpc": "2.0", **message})
        return f"id: e{number}\nretry: 10\ndata: {data}\n\n".encode()

    def progress(number: int) -> bytes:
        params = {"progressToken": asked_for[0], "progress": number}
        return event(number, method="notifications/progress", params=params)

    def begin(server: Faulty, asked: dict[str, Any]) -> None:
        asked_for.append(asked["id"])
        server.send_body(200, progress(1), "text/event-stream")

    class Closing(faulty(begin)):  # type: ignore[misc] # a class that is made for this test
        def do_GET(self) -> None:  # noqa: N802 -- the name that http.server calls
            last = self.headers.get("last-event-id")
            if last is None:
                self.send_body(405)
                return
            resumed.append(last)
            ended = event(3, id=asked_for[0], result={"content": []})
            self.send_body(200, progress(2) if last == "e1" else ended, "text/event-stream")

    with http_server(Closing) as url, connect(url, timeout=60) as remote:
        noted = remote.options(progress=lambda each: seen.append(each.progress))
        reply = noted.call("unsafe")

    assert reply.ok, reply.error
    assert (resumed, seen) == (["e1", "e2"], [1, 2])
    assert Closing.calls == ["unsafe"]


def test_a_call_to_a_child_that_had_ended_runs_once_in_a_new_child(
    tmp_path: Path, version: str
) -> None:
    """The child has ended, and the event loop had no time to notice it."""
    runs = tmp_path / "runs"
    children = Path(f"/proc/self/task/{os.getpid()}/children")

    async def run() -> Any:
        before = set(children.read_text().split())
        async with connect(STDIO, version=version, env={"SERVED_RUNS": str(runs)}) as server:
            await server.tools()
            for child in set(children.read_text().split()) - before:
                if Path(f"/proc/{child}/cmdline").read_bytes().count(b"served_app"):
                    os.kill(int(child), signal.SIGKILL)
                    assert wait_until_ended(int(child))
            return await server.call("record")

    reply = asyncio.run(run())

    assert reply.ok, reply.error
    assert runs.read_text().count("record") == 1


def mirroring(region: str | None) -> type[Faulty]:
    """A stateless server whose tool wants its argument in a header; *region* is what it accepts."""

    class Mirroring(faulty(answer)):  # type: ignore[misc] # a class that is made for this test
        seen: list[str | None] = []  # noqa: RUF012 -- one list for each test's server

        def do_POST(self) -> None:  # noqa: N802 -- the name that http.server calls
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if asked["method"] == "server/discover":
                found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                self.send_result(asked, found)
            elif asked["method"] == "tools/list":
                marked = {"region": {"type": "string", "x-mcp-header": "Region"}}
                schema = {"type": "object", "properties": marked}
                self.send_result(asked, {"tools": [{"name": "store", "inputSchema": schema}]})
            else:
                self.seen.append(self.headers.get("Mcp-Param-Region"))
                if self.seen[-1] == region:
                    answer(self, asked)
                else:
                    error = {"code": -32020, "message": "Header mismatch"}
                    body = {"jsonrpc": "2.0", "id": asked["id"], "error": error}
                    self.send_body(400, json.dumps(body).encode(), "application/json")

    return Mirroring


def test_a_call_without_the_headers_of_an_unread_list_is_sent_again_with_them() -> None:
    server = mirroring("west")

    with http_server(server) as url, connect(url, timeout=60) as remote:
        reply = remote.call("store", region="west")

    assert reply.ok, reply.error
    assert server.seen == [None, "west"]  # type: ignore[attr-defined] # it is a Mirroring


def test_a_call_whose_headers_are_refused_again_is_not_sent_a_third_time() -> None:
    server = mirroring("nowhere")

    with http_server(server) as url, connect(url, timeout=60) as remote:
        reply = remote.call("store", region="west")

    assert not reply.ok
    assert server.seen == [None, "west"]  # type: ignore[attr-defined] # it is a Mirroring
