"""Retries, breakers and limits on the client; the server counts the calls that reach it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.conftest import STDIO, http_server
from tests.client.faulty_http import Faulty, faulty
from tests.resilience.manual_clock import ManualClock

from answerback import App, ToolError, connect
from answerback.resilience import Breaker, Clock, Limit, Retry


def failing(status: int, times: int, **headers: str) -> type[Faulty]:
    """A server whose calls fail *times* times with an HTTP status, and then succeed."""

    def answer(server: Faulty, asked: dict[str, Any]) -> None:
        if len(server.calls) <= times:
            server.send_body(status, b"not now", **headers)
        else:
            server.send_result(asked, {"content": [{"type": "text", "text": "done"}]})

    return faulty(answer)


def retry(attempts: int = 3, **options: Any) -> Retry:
    return Retry(attempts, **{"clock": ManualClock(), "wait": lambda _: 0.0, **options})


@pytest.mark.parametrize(
    ("tool", "status", "calls"),
    [("safe", 503, 3), ("unsafe", 503, 1), ("unsafe", 429, 3), ("safe", 400, 1)],
)
def test_only_a_call_that_may_be_repeated_is_sent_again(tool: str, status: int, calls: int) -> None:
    server = failing(status, 2)

    with http_server(server) as url, connect(url, retry=retry()) as remote:
        reply = remote.call(tool)

    assert server.calls == [tool] * calls
    assert reply.ok == (calls == 3)


def test_the_wait_that_the_server_asks_for_is_kept() -> None:
    clock = ManualClock()
    server = failing(429, 1, retry_after="7")

    with http_server(server) as url, connect(url, retry=retry(clock=clock)) as remote:
        reply = remote.call("unsafe")

    assert reply.ok
    assert clock.waits == [7.0]


def test_without_a_retry_the_wait_is_in_the_details() -> None:
    server = failing(503, 1, retry_after="7")

    with http_server(server) as url, connect(url, retry=retry()) as remote:
        reply = remote.options(retry=None).call("safe")

    assert reply.error is not None
    assert reply.error.details == {"may_have_run": True, "status": 503, "retry_after": 7.0}
    assert server.calls == ["safe"]


def test_a_server_that_cannot_be_reached_is_tried_again_for_any_tool() -> None:
    """A stopped server is started again while the client waits for its next attempt."""
    started: list[Any] = []
    server = failing(200, 0)

    class Restart(Clock):
        async def sleep(self, seconds: float) -> None:
            started.append(http_server(server, port))
            await asyncio.to_thread(started[0].__enter__)

    with http_server(server) as url:
        port = int(url.rpartition(":")[2])
        connection = connect(url, retry=retry(clock=Restart()))
        remote = connection.__enter__()
    reply = remote.call("unsafe")
    connection.__exit__(None, None, None)
    started[0].__exit__(None, None, None)

    assert reply.ok, reply.error
    assert server.calls == ["unsafe"]


def test_an_open_breaker_refuses_calls_and_lists_without_a_request() -> None:
    server = failing(503, 100)
    breaker = Breaker("failing-server", failures=2, reset=30)

    with http_server(server) as url, connect(url, breaker=breaker) as remote:
        replies = [remote.call("unsafe") for _ in range(4)]
        with pytest.raises(ToolError, match="temporarily unavailable"):
            remote.tools()

    assert server.calls == ["unsafe"] * 2
    assert breaker.state == "open"
    assert replies[-1].error is not None
    assert replies[-1].error.code == "UNAVAILABLE"
    assert replies[-1].error.details == {"retry_after": 30, "may_have_run": False}


def test_a_limit_refuses_what_is_too_much() -> None:
    server = failing(200, 0)

    with http_server(server) as url, connect(url, limit=Limit("2/min")) as remote:
        replies = [remote.call("unsafe") for _ in range(3)]

    assert [reply.error and reply.error.code for reply in replies] == [None, None, "RATE_LIMITED"]
    assert server.calls == ["unsafe"] * 2


_HANGING = """
import json, sys
tool = {"name": "hang", "inputSchema": {}, "annotations": {"readOnlyHint": True}}
results = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {}},
    "tools/list": {"tools": [tool]},
}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] in results:
        result = {"resultType": "complete", **results[asked["method"]]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
HANGING = [sys.executable, "-I", "-S", "-c", _HANGING]
"""A server whose tool never answers."""


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"timeout": 0.4}, 0.4),
        ({"timeout": 0.2, "retry": Retry(2, wait=lambda _: 0.0)}, 0.4),
        ({"timeout": 600, "retry": Retry(9, wait=lambda _: 0.0, deadline=0.4)}, 0.4),
    ],
    ids=["time-out", "two attempts", "deadline"],
)
def test_a_call_ends_with_its_time_outs_or_its_deadline(
    options: dict[str, Any], seconds: float
) -> None:
    async def run() -> tuple[Any, float]:
        async with asyncio.timeout(60), connect(HANGING) as server:
            await server.tools()
            began = time.monotonic()
            reply = await server.options(**options).call("hang")
            return reply, time.monotonic() - began

    reply, taken = asyncio.run(run())

    assert reply.error.code == "TIMED_OUT"
    assert taken >= seconds


def test_a_cancelled_call_does_not_wait_for_its_next_attempt() -> None:
    server = failing(503, 100)
    waiting = asyncio.Event()

    class Waits(Clock):
        async def sleep(self, seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

    async def run(url: str) -> None:
        async with connect(url, retry=retry(clock=Waits())) as remote:
            call = asyncio.create_task(remote.call("safe"))
            await waiting.wait()
            call.cancel()
            async with asyncio.timeout(60):
                await asyncio.wait([call])
            assert call.cancelled()

    with http_server(server) as url:
        asyncio.run(run(url))

    assert server.calls == ["safe"]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_user_who_has_answered_is_not_asked_again_by_a_retry(version: str) -> None:
    asked: list[str] = []

    def answer(request: Any) -> dict[str, str]:
        asked.append(request.message)
        return {"value": "Ada"}

    with connect(STDIO, version=version, elicit=answer, retry=retry()) as server:
        reply = server.call("greet_in_vain")

    assert reply.error is not None
    assert reply.error.message == "no greetings today"
    assert asked == ["Your name?"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retry": 3}, r"retry=3 should be a Retry, such as Retry\(attempts=3\)"),
        ({"limit": Limit("1/s", per="user")}, "per='user' is for a server"),
        ({"breaker": Retry()}, "should be a Breaker"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_at_once(options: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        connect(App("any"), **options)
    with connect(App("any")) as server, pytest.raises(TypeError, match=said):
        server.options(**options)


def test_one_breaker_for_several_servers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a breaker belongs to one server; .*servers\.servers\["):
        connect({"mcpServers": {"one": App("one")}}, breaker=Breaker("of-several"))


def rest_pages(statuses: list[int]) -> tuple[type[Faulty], Callable[[], int]]:
    """A server of plain REST with these statuses, one after the other."""
    seen: list[str] = []

    class Pages(faulty(lambda *_: None)):  # type: ignore[misc] # a class for this test
        def do_POST(self) -> None:  # noqa: N802 -- the name that http.server calls
            self.rfile.read(int(self.headers["content-length"]))
            status = statuses[min(len(seen), len(statuses) - 1)]
            seen.append(self.path)
            self.send_body(status, b'{"result": 1}', "application/json")

    return Pages, lambda: len(seen)


@pytest.mark.parametrize(("status", "calls"), [(503, 1), (429, 2)])
def test_plain_rest_has_the_same_retries(status: int, calls: int) -> None:
    pages, count = rest_pages([status, 200])

    with http_server(pages) as url, connect(url, transport="rest", retry=retry()) as remote:
        reply = remote.call("pay")

    assert count() == calls
    assert reply.ok == (calls == 2)
