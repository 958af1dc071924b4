"""Retries, breakers and limits on every wire, beside gates, middleware, records and the log."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.conftest import Server, serving
from tests.loop_clock import advance_clock
from tests.records.support import MemorySink
from tests.resilience.manual_clock import ManualClock
from tests.serving import runtime_of

from answerback import App, Context, Forbidden, Invocation, Next, Observation, Reply
from answerback.core.authentication import User
from answerback.core.peer import Peer, Question
from answerback.records import Records
from answerback.resilience import Breaker, Limit, Retry
from answerback.testing import TestContext

FILE = Path(__file__).parent.parent / "apps" / "resilient.py"
NAMES = ("plain", "inline", "with_await")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    os.environ["RUNS"] = str(tmp_path_factory.mktemp("runs") / "http")
    try:
        with serving(FILE) as served:
            yield served
    finally:
        del os.environ["RUNS"]


def post(url: str) -> tuple[int, dict[str, str], Any]:
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response.status, headers, json.loads(response.read())


def run(tmp_path: Path, *arguments: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, str(FILE), *arguments],
        stdout=subprocess.PIPE,
        input=b"{}",
        env=os.environ | environ | {"RUNS": str(tmp_path / "runs")},
        timeout=60,
    )
    return done.stdout.decode()


def test_a_failed_attempt_is_tried_again_over_rest(server: Server) -> None:
    answers = [post(f"{server.url}/functions/{name}") for name in NAMES]

    assert [body for _, _, body in answers] == [{"result": f"{name} after 3"} for name in NAMES]


def test_a_failed_attempt_is_tried_again_from_the_shell_and_over_cgi(tmp_path: Path) -> None:
    called = [run(tmp_path, "call", name) for name in NAMES]
    (tmp_path / "runs").unlink()
    cgi = [
        run(
            tmp_path,
            "cgi",
            REQUEST_METHOD="POST",
            PATH_INFO=f"/{name}",
            CONTENT_LENGTH="2",
            CONTENT_TYPE="application/json",
        )
        for name in NAMES
    ]

    expected = [{"result": f"{name} after 3"} for name in NAMES]
    assert [json.loads(each) for each in called] == expected
    assert [json.loads(each.rpartition("\n")[2]) for each in cgi] == expected


def test_a_failed_attempt_is_tried_again_over_stdio(tmp_path: Path) -> None:
    async def results() -> list[Any]:
        environ = os.environ | {"RUNS": str(tmp_path / "runs")}
        target = StdioServerParameters(
            command=sys.executable, args=[str(FILE), "mcp"], env=dict(environ)
        )
        async with Client(target, read_timeout_seconds=20) as client:
            return [await client.call_tool(name, {}) for name in NAMES]

    found = asyncio.run(results())

    assert [each.structured_content for each in found] == [
        {"result": f"{name} after 3"} for name in NAMES
    ]


def test_a_cancelled_call_over_stdio_stops_waiting_at_once(tmp_path: Path) -> None:
    """The thread of the call sleeps for 50 seconds; the server must still end."""
    runs = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, str(FILE), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"RUNS": str(runs)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def send(method: str, **members: Any) -> None:
        assert process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, **members}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()

    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    try:
        send("initialize", id=1, params=params)
        process.stdout.readline()
        send("notifications/initialized")
        send("tools/call", id=2, params={"name": "patient", "arguments": {}})
        while not runs.exists() or not runs.read_text():
            assert process.poll() is None
        send("notifications/cancelled", params={"requestId": 2})
        process.stdin.close()
        status = process.wait(timeout=60)
    finally:
        process.kill()
        process.stdout.close()

    assert status == 0
    assert runs.read_text() == "patient\n"


@pytest.mark.parametrize("name", ["once", "once_for_each"])
def test_a_limit_is_429_with_retry_after_over_rest(server: Server, name: str) -> None:
    post(f"{server.url}/functions/{name}")
    status, headers, body = post(f"{server.url}/functions/{name}")

    assert status == 429
    assert headers["x-error-code"] == "RATE_LIMITED"
    assert 55 <= int(headers["retry-after"]) <= 60
    assert body == {"error": "Too many calls: the limit is 1/min"}


def test_an_open_breaker_is_503_with_retry_after_and_shown_in_the_health(server: Server) -> None:
    post(f"{server.url}/functions/broken")
    status, headers, body = post(f"{server.url}/functions/broken")
    with urllib.request.urlopen(f"{server.url}/healthz", timeout=60) as response:
        health = json.loads(response.read())

    assert status == 503
    assert 35 <= int(headers["retry-after"]) <= 40
    assert body == {"error": "Service temporarily unavailable"}
    assert health["checks"]["breakers"] == {"ready": True, "upstream": "open", "trips": 1}


def test_mcp_carries_the_time_to_come_back_in_meta(server: Server) -> None:
    async def refused() -> Any:
        async with Client(f"{server.url}/mcp", read_timeout_seconds=20) as client:
            await client.call_tool("broken", {})
            return await client.call_tool("broken", {})

    result = asyncio.run(refused())

    assert result.is_error
    error = result.meta["answerback/error"]
    assert error["code"] == "UNAVAILABLE"
    assert error["retryable"] is True
    assert 35 <= error["details"]["retry_after"] <= 40
    assert error["hint"].startswith("try again in ")


def test_a_gate_refuses_before_the_limit_counts() -> None:
    app = App("app")

    def only_ann(ctx: Context) -> None:
        if ctx.user != "ann":
            raise Forbidden("not you")

    @app.tool(requires=[only_ann], limit=Limit("1/min", clock=ManualClock()))
    def work() -> str:
        return "done"

    def code(user: str) -> str:
        reply = asyncio.run(app.call("work", ctx=TestContext(user=user)))
        return "" if reply.error is None else reply.error.code

    assert [code("bob"), code("ann"), code("ann")] == ["FORBIDDEN", "", "RATE_LIMITED"]


def test_middleware_sees_one_call_whatever_the_attempts() -> None:
    seen: list[str] = []
    errors = [ConnectionResetError(), ConnectionResetError()]

    async def count(call: Invocation, next: Next) -> Any:
        seen.append(call.name)
        return await next(call)

    app = App("app", middleware=[count])

    @app.tool(retry=Retry(clock=ManualClock()), idempotent=True)
    def work() -> str:
        if errors:
            raise errors.pop()
        return "done"

    reply = asyncio.run(app.call("work"))

    assert reply.data == "done"
    assert seen == ["work"]


def test_a_limit_counts_a_call_once_if_there_is_middleware() -> None:
    async def pass_on(call: Invocation, next: Next) -> Any:
        return await next(call)

    app = App("app", middleware=[pass_on])

    @app.tool(limit=Limit("2/min", clock=ManualClock()))
    def work() -> str:
        return "done"

    replies = [asyncio.run(app.call("work")) for _ in range(3)]

    assert [each.ok for each in replies] == [True, True, False]


def test_an_app_that_includes_the_tool_shares_its_breaker() -> None:
    clock = ManualClock()
    inner, outer = App("inner"), App("outer")

    @inner.tool(breaker=Breaker("included", failures=1, clock=clock))
    def work() -> str:
        raise ConnectionResetError

    outer.include(inner, prefix="in_")
    asyncio.run(outer.call("in_work"))
    reply = asyncio.run(outer.call("in_work"))
    health = runtime_of(outer).health()["breakers"]()

    assert reply.error is not None
    assert reply.error.code == "UNAVAILABLE"
    assert health is not None
    assert health.details["included"] == "open"


def test_records_have_the_attempts_and_the_state_of_the_breaker() -> None:
    sink = MemorySink()
    records = Records(sink)
    app = App("app", records=records)
    clock = ManualClock()

    @app.tool(
        retry=Retry(clock=clock),
        breaker=Breaker("recorded", failures=1, clock=clock),
        idempotent=True,
    )
    def work() -> str:
        raise ConnectionResetError

    @app.tool
    def plain() -> str:
        return "done"

    for name in ("work", "work", "plain"):
        asyncio.run(app.call(name))
    records.flush()

    events = [entry.event for entry in sink.entries if entry.event.is_reply]
    assert [(each.attempts, each.breaker) for each in events] == [(3, "open"), (0, "open"), (0, "")]


def test_the_record_of_the_call_that_opens_a_breaker_says_so_and_has_the_reference() -> None:
    sink = MemorySink()
    records = Records(sink)
    app = App("app", records=records)
    clock = ManualClock()

    @app.tool(breaker=Breaker("trips", failures=2, clock=clock))
    def work() -> str:
        raise ConnectionResetError

    replies = [asyncio.run(app.call("work")) for _ in range(3)]
    records.flush()

    events = [entry.event for entry in sink.entries if entry.event.is_reply]
    assert [each.opened for each in events] == [False, True, False]
    assert replies[1].error is not None
    assert events[1].code == "UNAVAILABLE"
    assert events[1].reference == replies[1].error.details["reference"]


def test_the_log_record_of_a_failure_has_the_whole_story(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("app")
    clock = ManualClock()
    ann = User(subject="ann", issuer="test")

    @app.tool(retry=Retry(clock=clock), breaker=Breaker("logged", clock=clock), idempotent=True)
    def work() -> str:
        raise ConnectionResetError("10.0.0.7 closed the connection")

    reply = asyncio.run(app.call("work", ctx=TestContext(user=ann)))

    assert reply.error is not None
    record: Any = next(each for each in caplog.records if each.levelno == logging.ERROR)
    assert record.tool == "work"
    assert record.wire == "memory"
    assert record.code == reply.error.code == "UNAVAILABLE"
    assert record.reference == reply.error.details["reference"]
    assert record.attempts == 3
    assert record.breaker == "closed"
    assert record.user == ann.key.hex()
    assert 0 <= record.seconds < 5
    assert "10.0.0.7" in str(record.exc_info[1])
    assert "10.0.0.7" not in reply.error.message


class SlowUser(Peer):
    """A peer whose user takes longer to answer than the tool may take."""

    can = TestContext().can

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    async def ask(self, question: Question) -> Any:
        self._clock.time += 120
        advance_clock(120)
        return {"action": "accept", "content": {"answer": "Oslo"}}


class SlowUserContext(TestContext):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._call.peer = SlowUser(clock)


def call_slowly(goes_on: bool = False, deadline: float | None = None) -> Reply[Any]:
    """Call a tool that asks a slow user; with *goes_on* it takes too long after the answer."""
    app, clock = App("app"), ManualClock()
    retry = Retry(deadline=deadline, clock=clock) if deadline else None

    @app.tool(timeout=60, retry=retry, idempotent=True)
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Which city?", dict[str, str])
        if goes_on:
            advance_clock(120)
            await asyncio.Event().wait()
        return str(answer)

    return asyncio.run(app.call("ask", ctx=SlowUserContext(clock)))


def test_the_time_out_stops_while_the_user_is_asked() -> None:
    reply = call_slowly()

    assert reply.ok, reply.error


def test_the_time_out_goes_on_after_the_answer() -> None:
    reply = call_slowly(goes_on=True)

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"


def test_the_deadline_stops_while_the_user_is_asked() -> None:
    reply = call_slowly(deadline=60)

    assert reply.ok, reply.error


def test_a_call_that_asked_the_user_is_not_tried_again() -> None:
    app = App("app")
    clock = ManualClock()
    asked: list[str] = []

    @app.tool(retry=Retry(clock=clock), idempotent=True)
    async def ask(ctx: Context) -> str:
        asked.append(await ctx.elicit("Which city?", str))
        raise ConnectionResetError

    reply = asyncio.run(app.call("ask", ctx=TestContext(["Oslo", "Oslo", "Oslo"])))

    assert not reply.ok
    assert asked == ["Oslo"]
    assert clock.waits == []


def test_an_observer_sees_one_outcome() -> None:
    seen: list[Observation] = []
    app = App("app", observers=[seen.append])

    @app.tool(retry=Retry(clock=ManualClock()), idempotent=True)
    def work() -> str:
        raise ConnectionResetError

    asyncio.run(app.call("work"))

    assert len(seen) == 1
