"""MCP sessions on several hosts that share a database: any host serves any request."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
from tests import ports
from tests.conftest import Server
from tests.fuzz.stdio_client import wait_until
from tests.state.hosts import environment, started
from tests.state.postgres import Postgres
from tests.state.proxy import round_robin
from tests.state.sessions import Session
from tests.state.stores import make_tables

from answerback import App
from answerback.server.asgi import database_bus

TALKS = Path(__file__).parent / "talks.py"
Start = Callable[..., Server]


@contextmanager
def _served_by_uvicorn(url: str, lifespan: str, log: Path) -> Iterator[str]:
    """Serve `app.asgi()`; yield the address."""
    words = [sys.executable, "-m", "uvicorn", "tests.state.talks:application"]
    words += ["--log-level", "warning", "--lifespan", lifespan, "--port"]
    folder = TALKS.parent.parent.parent
    with ports.listening(
        lambda port: [*words, str(port)], log, env=environment(url), cwd=folder
    ) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def start(start_app: Start) -> Start:
    """Starts servers of the app with sessions."""
    return partial(start_app, TALKS, "serve")


@pytest.fixture(scope="module")
def hosts(postgres: Postgres) -> Iterator[list[str]]:
    """The addresses of three servers, which several tests share: each has sessions of its own."""
    url = postgres.new_database()
    make_tables(url)
    with ExitStack() as stack:
        stack.callback(postgres.drop, url)
        yield [stack.enter_context(started(url, TALKS, "serve")).url for _ in range(3)]


def test_a_session_goes_on_at_every_host_behind_a_proxy(start: Start) -> None:
    servers = [start() for _ in range(3)]

    with round_robin(*(server.port for server in servers)) as url:
        session = Session(url)
        found = {session.call(url, "pid") for _ in range(6)}

    assert found == {server.process.pid for server in servers}


def test_a_question_asked_at_one_host_is_answered_at_another(hosts: list[str]) -> None:
    first, second, third = hosts
    session = Session(first)

    with session.calling(second, 7, "greet") as events:
        question = events.next()
        answer = {"action": "accept", "content": {"name": "Ada"}}
        answered = session.send(third, {"id": question["id"], "result": answer})
        result = events.next()

    assert question["method"] == "elicitation/create"
    assert answered.status_code == 202
    assert result["id"] == 7
    assert result["result"]["structuredContent"] == {"result": "Hello, Ada!"}


def test_a_call_is_cancelled_at_another_host(hosts: list[str], tmp_path: Path) -> None:
    first, second, third = hosts
    session = Session(first)

    with session.calling(second, 7, "until", path=str(tmp_path / "never")):
        wait_until((tmp_path / "never.begun").exists)
        session.notify(third, "notifications/cancelled", requestId=7)

        assert wait_until((tmp_path / "never.cancelled").exists)


def test_a_stream_is_resumed_at_another_host(hosts: list[str], tmp_path: Path) -> None:
    first, second, third = hosts
    session = Session(first)
    with session.calling(second, 7, "until", path=str(tmp_path / "file")) as events:
        last_event = events.read_id()
        wait_until((tmp_path / "file.begun").exists)

    with session.listening(third, last_event) as events:
        (tmp_path / "file").touch()
        frames = list(events)

    assert [frame["id"] for frame in frames] == [7]
    assert frames[0]["result"]["structuredContent"]["result"] == session.call(second, "pid")


def test_only_the_newest_stream_of_a_session_gets_notifications_wherever_it_is(
    hosts: list[str],
) -> None:
    first, second, third = hosts
    session = Session(first)
    for name in ("one", "two", "three"):
        session.post(first, "resources/subscribe", uri=f"note://{name}")

    with session.listening(second) as older:
        session.call(third, "change", name="one")
        found = [older.next()]
        with session.listening(first) as newer:
            session.call(third, "change", name="two")
            found_by_newer = newer.next()
        reading = threading.Thread(target=lambda: found.append(older.next()))
        reading.start()
        # The end of the newer stream is noticed soon.
        wait_until(lambda: session.call(third, "change", name="three") or len(found) == 2)
        reading.join(60)

    assert [each["params"]["uri"] for each in found] == ["note://one", "note://three"]
    assert found_by_newer["params"]["uri"] == "note://two"


def test_a_log_level_set_at_one_host_holds_at_another(hosts: list[str]) -> None:
    session = Session(hosts[0])

    def is_quiet() -> bool:
        response = session.post(hosts[1], "tools/call", name="shout", arguments={})
        return "notifications/message" not in response.text

    session.post(hosts[0], "logging/setLevel", level="debug")
    wait_until(lambda: not is_quiet())
    session.post(hosts[2], "logging/setLevel", level="error")

    assert wait_until(is_quiet)


def test_a_session_ended_at_one_host_ends_at_all_and_stays_ended_after_every_process_was_killed(
    start: Start,
) -> None:
    servers = [start() for _ in range(3)]
    urls = [server.url for server in servers]
    session, other = Session(urls[0]), Session(urls[0])

    ended = session.end(urls[1])
    wait_until(lambda: {session.status(url) for url in urls} == {404})
    for server in servers:
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(60)
    new = start().url

    assert ended.status_code == 204
    assert session.status(new) == 404
    assert other.status(new) == 200


def test_a_get_stream_of_a_session_that_has_just_ended_elsewhere_is_refused(
    hosts: list[str],
) -> None:
    statuses = set()
    for _ in range(10):
        session = Session(hosts[0])
        session.end(hosts[1])
        headers = {**session.headers, "Accept": "text/event-stream"}
        with httpx.stream("GET", f"{hosts[2]}/mcp", headers=headers, timeout=30) as response:
            statuses.add(response.status_code)

    assert statuses == {404}


def test_a_tool_disabled_at_one_host_is_disabled_at_all_and_at_later_ones(start: Start) -> None:
    urls = [start().url, start().url]
    session = Session(urls[0])

    session.call(urls[0], "set_extra", on=False)
    wait_until(lambda: "extra" not in session.tools(urls[1]))
    later = start().url
    refused = httpx.post(f"{later}/functions/extra", json={})
    session.call(later, "set_extra", on=True)

    assert refused.status_code == 404
    assert wait_until(lambda: all("extra" in session.tools(url) for url in urls))


def test_a_resumed_stream_of_a_killed_host_ends_with_an_error(
    start: Start, state_url: str, tmp_path: Path
) -> None:
    lost, other = start(), start()
    session = Session(other.url)
    with session.calling(lost.url, 7, "until", path=str(tmp_path / "never")) as events:
        last_event = events.read_id()
        wait_until((tmp_path / "never.begun").exists)
        lost.process.send_signal(signal.SIGKILL)
        lost.process.wait(60)
    with psycopg.connect(state_url) as connection:
        # As if it had shown 12 seconds ago that it lives; 15 would be too long.
        query = "UPDATE answerback.processes SET seen = seen - 12 WHERE number = %s"
        connection.execute(query, (last_event.partition(".")[0],))

    with session.listening(other.url, last_event) as events:
        frames = list(events)
    # The death is known by now.
    with session.listening(other.url, last_event) as events:
        again = list(events)

    assert [frame["id"] for frame in frames] == [7]
    assert frames[0]["error"]["data"]["code"] == "WORKER_LOST"
    assert again == frames


def test_without_the_database_calls_of_sessions_go_on_and_their_changes_get_503(
    postgres: Postgres, hosts: list[str]
) -> None:
    session = Session(hosts[0])
    postgres.pause()
    try:
        call = session.call(hosts[1], "pid")
        stream = httpx.get(
            f"{hosts[1]}/mcp",
            headers={**session.headers, "Accept": "text/event-stream"},
            timeout=30,
        )
        refused = [
            session.end(hosts[1]),
            session.post(hosts[1], "logging/setLevel", level="error"),
            session.notify(hosts[1], "notifications/cancelled", requestId=99),
            stream,
            httpx.post(f"{hosts[1]}/functions/set_extra", json={"on": False}, timeout=30),
        ]
        tools = session.tools(hosts[1])
    finally:
        postgres.resume()

    assert call
    assert "extra" in tools
    assert [(each.status_code, each.headers["Retry-After"]) for each in refused] == [(503, "5")] * 5
    wait_until(lambda: session.end(hosts[1]).status_code == 204)
    assert wait_until(lambda: {session.status(url) for url in hosts} == {404})


def test_workers_and_hosts_share_their_sessions(start: Start) -> None:
    servers = [start("--workers", "2"), start("--workers", "2")]
    urls = [server.url for server in servers]
    session = Session(urls[0])

    found: set[int] = set()

    def have_all_answered() -> bool:
        found.update(session.call(url, "pid") for url in urls)
        return len(found) == 4

    wait_until(have_all_answered)
    session.end(urls[1])

    assert wait_until(lambda: {session.status(url) for url in urls * 4} == {404})


@pytest.mark.parametrize("lifespan", ["on", "off"])
def test_sessions_are_shared_under_another_asgi_server(
    state_url: str, lifespan: str, tmp_path: Path
) -> None:
    make_tables(state_url)
    with (
        _served_by_uvicorn(state_url, lifespan, tmp_path / "first") as first,
        _served_by_uvicorn(state_url, lifespan, tmp_path / "second") as second,
    ):
        session = Session(first)
        with session.calling(first, 7, "greet") as events:
            question = events.next()
            answer = {"action": "decline"}
            session.send(second, {"id": question["id"], "result": answer})
            result = events.next()
        session.end(second)

        assert result["result"]["isError"] is True
        assert wait_until(lambda: session.status(first) == 404)


def test_messages_between_hosts_are_unreadable_and_removed_after_a_minute(
    start: Start, state_url: str
) -> None:
    server, stopped = start(), start()
    session = Session(server.url)
    stopped.process.send_signal(signal.SIGSTOP)
    try:
        session.notify(server.url, "notifications/cancelled", requestId="a-private-id")
        with psycopg.connect(state_url, autocommit=True) as connection:
            kept = connection.execute("SELECT message FROM answerback.bus").fetchall()
            connection.execute("UPDATE answerback.bus SET made = made - 61")

            def is_empty() -> bool:
                found = connection.execute("SELECT count(*) FROM answerback.bus").fetchone()
                return found == (0,)

            assert wait_until(is_empty)
    finally:
        stopped.process.send_signal(signal.SIGCONT)

    assert len(kept) == 1
    assert b"private" not in bytes(kept[0][0])


def test_hosts_agree_on_a_tool_that_several_of_them_switch_at_the_same_time(
    hosts: list[str],
) -> None:
    session = Session(hosts[0])

    def switch(url: str) -> None:
        for number in range(10):
            session.call(url, "set_extra", on=bool(number % 2) == (url == hosts[0]))

    with ThreadPoolExecutor() as threads:
        list(threads.map(switch, hosts))

    assert wait_until(lambda: len({"extra" in session.tools(url) for url in hosts}) == 1)
    session.call(hosts[0], "set_extra", on=True)
    assert wait_until(lambda: all("extra" in session.tools(url) for url in hosts))


def test_changes_are_found_by_polling_if_no_notice_arrives(start: Start) -> None:
    nowhere = f"postgresql://postgres@127.0.0.1:{ports.free_port()}/none"
    urls = [start("--state-listen", nowhere).url for _ in range(2)]
    session = Session(urls[0])

    ended = session.end(urls[0])

    assert ended.status_code == 204
    assert wait_until(lambda: session.status(urls[1]) == 404)


def test_after_a_crash_of_the_database_sessions_go_on_and_stay_ended(
    postgres: Postgres, start_app: Start
) -> None:
    hosts = [start_app(TALKS, "serve").url for _ in range(2)]
    session, ended = Session(hosts[0]), Session(hosts[0])
    assert ended.end(hosts[0]).status_code == 204

    postgres.stop(signal.SIGKILL)
    postgres.start()

    def is_answered_elsewhere() -> bool:
        with session.calling(hosts[0], 7, "greet") as events:
            question = events.next()
            answer = {"id": question["id"], "result": {"action": "decline"}}
            if session.send(hosts[1], answer).status_code != 202:
                session.send(hosts[0], answer)
                return False
            return bool(events.next()["result"]["isError"])

    assert wait_until(is_answered_elsewhere)
    assert wait_until(lambda: {ended.status(url) for url in hosts} == {404})


def test_an_application_that_is_started_again_gets_notices_again(
    state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tables(state_url)
    monkeypatch.setenv("ANSWERBACK_STATE", state_url)
    monkeypatch.setenv("ANSWERBACK_SECRET", "s" * 32)
    # Only a notice can be in time.
    monkeypatch.setattr(database_bus, "_POLL", 3600.0)

    def with_extra() -> App:
        app = App("talks")
        app.add_tool(extra)
        return app

    one, two = with_extra(), with_extra()
    first, second = one.asgi(signals=False), two.asgi(signals=False)
    before = listening()

    async def restart_and_switch() -> None:
        await first.start()
        await second.start()
        await first.stop()
        await asyncio.to_thread(wait_until, lambda: listening() <= before + 1)
        await first.start()
        await asyncio.to_thread(two.disable, "extra")
        await asyncio.to_thread(wait_until, lambda: "extra" not in one.tools)
        await first.stop()
        await second.stop()

    asyncio.run(restart_and_switch())

    assert "extra" not in one.tools


def listening() -> int:
    """How many threads of this process listen."""
    return sum(thread.name == "answerback-listen" for thread in threading.enumerate())


def extra() -> str:
    return "extra"
