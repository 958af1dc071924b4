"""Faults of a real upstream process: no call is lost silently, and none is doubled."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from answerback import App, Reply
from answerback.resilience import Breaker, Limit, Retry

SCRIPT = Path(__file__).with_name("upstream.py")


class Upstream:
    """The process of the upstream; it can be started again on the same port."""

    def __init__(self, log: Path) -> None:
        self._log = log
        log.touch()
        self.attempts: list[str] = []
        """The paths that the tool `fetch` has begun to ask for."""
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        self.end()
        command = [sys.executable, str(SCRIPT), str(self._log), str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def end(self) -> None:
        if self._process is not None:
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process.kill()
            self._process.wait(60)

    def requests(self, path: str) -> int:
        return self._log.read_text().split().count(path)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    started = Upstream(tmp_path_factory.mktemp("upstream") / "log")
    yield started
    started.end()


def app_for(upstream: Upstream, **options: Any) -> App:
    app = App("app")

    @app.tool(**options)
    async def fetch(path: str) -> bool:
        upstream.attempts.append(path)
        async with httpx.AsyncClient(timeout=None, trust_env=False) as client:
            url = f"http://127.0.0.1:{upstream.port}{path}"
            response = await client.post(url, content=b"{}")
            response.raise_for_status()
            ok: bool = response.json()["ok"]
            return ok

    @app.tool(**options)
    def fetch_plainly(path: str) -> bool:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{upstream.port}{path}", b"{}") as response:
                return b"true" in response.read()
        except urllib.error.HTTPError as error:
            error.close()
            raise

    return app


def call(app: App, path: str, name: str = "fetch") -> Reply[Any]:
    return asyncio.run(app.call(name, path=path))


def timed_call(app: App, path: str) -> tuple[Reply[Any], float]:
    """The reply and the seconds of a call."""
    began = time.monotonic()
    reply = call(app, path)
    return reply, time.monotonic() - began


def soon(attempt: int) -> float:
    return 0.0


@pytest.mark.parametrize("name", ["fetch", "fetch_plainly"])
def test_an_upstream_that_fails_is_asked_until_it_answers(upstream: Upstream, name: str) -> None:
    app = app_for(upstream, retry=Retry(attempts=3, wait=soon), idempotent=True)

    reply = call(app, f"/fails-{name}", name)

    assert reply.data is True
    assert upstream.requests(f"/fails-{name}") == 3


@pytest.mark.parametrize("name", ["fetch", "fetch_plainly"])
def test_what_is_not_idempotent_reaches_a_failing_upstream_once(
    upstream: Upstream, name: str
) -> None:
    app = app_for(upstream, retry=Retry(attempts=3, wait=soon))

    replies = [call(app, f"/{mode}-once-{name}", name) for mode in ("always", "half")]

    assert [each.ok for each in replies] == [False, False]
    assert upstream.requests(f"/always-once-{name}") == 1
    assert upstream.requests(f"/half-once-{name}") == 1


def test_an_upstream_that_hangs_is_left_after_the_time_out_of_each_attempt(
    upstream: Upstream,
) -> None:
    app = app_for(upstream, timeout=0.5, retry=Retry(attempts=2, wait=soon), idempotent=True)

    reply, seconds = timed_call(app, "/hangs")

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert upstream.attempts.count("/hangs") == 2
    assert seconds >= 1.0


def test_the_deadline_holds_for_all_attempts_together(upstream: Upstream) -> None:
    """Nine attempts would take longer than the deadline."""
    retry = Retry(attempts=9, wait=soon, deadline=0.7)
    app = app_for(upstream, timeout=0.1, retry=retry, idempotent=True)

    reply, seconds = timed_call(app, "/hangs-long")

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert 1 <= upstream.attempts.count("/hangs-long") < 9
    assert seconds >= 0.7


def test_a_slow_upstream_is_asked_once(upstream: Upstream) -> None:
    app = app_for(upstream, timeout=60, retry=Retry(), idempotent=True)

    reply = call(app, "/slow")

    assert reply.data is True
    assert upstream.requests("/slow") == 1


@pytest.mark.parametrize("name", ["fetch", "fetch_plainly"])
def test_an_upstream_that_dies_in_a_call_is_asked_again_when_it_is_back(
    upstream: Upstream, name: str
) -> None:
    def restart(attempt: int) -> float:
        upstream.start()
        return 0.0

    app = app_for(upstream, retry=Retry(wait=restart), idempotent=True)

    reply = call(app, f"/dies-{name}", name)

    assert reply.data is True
    assert upstream.requests(f"/dies-{name}") == 2


@pytest.mark.parametrize("name", ["fetch", "fetch_plainly"])
def test_a_refused_connection_is_tried_again_even_if_the_tool_is_not_idempotent(
    upstream: Upstream, name: str
) -> None:
    def restart(attempt: int) -> float:
        upstream.start()
        return 0.0

    app = app_for(upstream, retry=Retry(wait=restart))
    upstream.end()

    reply = call(app, f"/slow-refused-{name}", name)

    assert reply.data is True
    assert upstream.requests(f"/slow-refused-{name}") == 1


@pytest.mark.parametrize("name", ["fetch", "fetch_plainly"])
def test_an_answer_that_ends_too_early_is_asked_for_again(upstream: Upstream, name: str) -> None:
    app = app_for(upstream, retry=Retry(wait=soon), idempotent=True)

    reply = call(app, f"/half-{name}", name)

    assert reply.data is True
    assert upstream.requests(f"/half-{name}") == 2


def test_an_answer_without_an_end_is_left_after_the_time_out(upstream: Upstream) -> None:
    app = app_for(upstream, timeout=0.5)

    reply, seconds = timed_call(app, "/floods")

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert seconds >= 0.5


def test_an_answer_that_drips_is_left_after_the_time_out(upstream: Upstream) -> None:
    app = app_for(upstream, timeout=0.5)

    reply, seconds = timed_call(app, "/drips")

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert seconds >= 0.5


@pytest.mark.parametrize("name", ["fetch", "fetch_plainly"])
@pytest.mark.parametrize(("options", "requests"), [({"idempotent": True}, 2), ({}, 1)])
def test_a_connection_that_is_closed_in_one_direction_is_asked_again_if_that_is_safe(
    upstream: Upstream, name: str, options: dict[str, Any], requests: int
) -> None:
    app = app_for(upstream, retry=Retry(wait=soon), **options)
    path = f"/shuts-{name}-{requests}"

    reply = call(app, path, name)

    assert reply.ok is (requests == 2)
    assert upstream.requests(path) == requests


@pytest.mark.parametrize("name", ["fetch", "fetch_plainly"])
def test_a_request_that_was_refused_until_a_date_is_sent_again_by_every_tool(
    upstream: Upstream, name: str
) -> None:
    app = app_for(upstream, retry=Retry(wait=soon))

    reply = call(app, f"/later-{name}", name)

    assert reply.data is True
    assert upstream.requests(f"/later-{name}") == 2


async def call_together(app: App, paths: list[str]) -> list[Reply[Any]]:
    return await asyncio.gather(*(app.call("fetch_plainly", path=path) for path in paths))


def test_of_many_calls_at_once_none_is_lost_and_none_is_doubled(upstream: Upstream) -> None:
    limit = Limit("100/s", concurrent=30)
    breaker = Breaker("many calls", failures=100)
    retry = Retry(attempts=3, wait=soon)
    repeated = app_for(upstream, retry=retry, breaker=breaker, limit=limit, idempotent=True)
    once = app_for(upstream, retry=retry, breaker=breaker, limit=limit)
    paths = [f"/flaky-{number}" for number in range(40)]
    lost = [f"/half-{number}" for number in range(20)]

    replies = asyncio.run(call_together(repeated, paths))
    failed = asyncio.run(call_together(once, lost))

    codes = [each.error.code if each.error else "" for each in replies]
    # A call that ends early makes room for one more.
    assert set(codes) <= {"", "RATE_LIMITED"}
    assert codes.count("") >= 30
    sent = [upstream.requests(path) for path in paths]
    assert sent == [0 if code else 2 for code in codes]
    assert {each.error.code for each in failed if each.error} == {"UNAVAILABLE"}
    assert [upstream.requests(path) for path in lost] == [1] * 20


def test_an_upstream_that_only_fails_is_no_longer_asked(upstream: Upstream) -> None:
    app = app_for(upstream, breaker=Breaker("upstream of tests", failures=3))

    errors = [call(app, "/always").error for _ in range(6)]

    assert [each.code for each in errors if each is not None] == ["UNAVAILABLE"] * 6
    details = [list(each.details) for each in errors if each is not None]
    assert details == [["reference"]] * 3 + [["retry_after"]] * 3
    assert upstream.requests("/always") == 3
