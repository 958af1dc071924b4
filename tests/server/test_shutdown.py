"""Shutting `serve` down: running calls, signals, and clients or threads that hang."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.processes import (
    BOUND,
    BackgroundCall,
    refuses_connections,
    wait_until,
    workers_of,
)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_running_call_is_answered_before_the_server_exits(
    serve: Any, call: Any, waiting_app: Path, number: int, status: int, workers: str
) -> None:
    release = waiting_app.with_suffix(".release")
    with serve(waiting_app, "--workers", workers) as server:
        running = BackgroundCall(lambda: call(server, "wait", release=str(release)))
        wait_until(Path(f"{release}.running").exists)

        server.process.send_signal(number)
        wait_until(lambda: refuses_connections(server.port))
        release.touch()
        running.join(BOUND)

        assert running.result == {"result": "done"}
        assert server.process.wait(BOUND) == status


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("tool", ["wait", "wait_stubbornly"])
def test_a_second_interrupt_does_not_wait_for_running_calls(
    serve: Any, call: Any, waiting_app: Path, workers: str, tool: str
) -> None:
    release = waiting_app.with_suffix(".never")
    with serve(waiting_app, "--workers", workers) as server:
        BackgroundCall(lambda: call(server, tool, release=str(release)))
        wait_until(Path(f"{release}.running").exists)

        server.process.send_signal(signal.SIGINT)
        message = server.stderr.readline().decode()
        server.process.send_signal(signal.SIGINT)

        assert server.process.wait(BOUND) == 130
        advice = "press Ctrl-C again to stop immediately"
        assert f"finishing 1 call, for up to 30 seconds; {advice}\n" in message
        assert message.startswith("worker ") == (workers == "2")
        assert server.stderr.read() == b""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_interrupt_ends_a_server_whose_tool_blocks_the_event_loop(
    serve: Any, call: Any, waiting_app: Path, workers: str
) -> None:
    release = waiting_app.with_suffix(".never")
    with serve(waiting_app, "--workers", workers) as server:
        BackgroundCall(lambda: call(server, "wait_inline", release=str(release)))
        wait_until(Path(f"{release}.running").exists)

        server.process.send_signal(signal.SIGINT)
        # Nothing shows when the first signal was handled, because the event loop is blocked, and
        # two pending signals count as one: send further ones.
        wait_until(lambda: server.process.send_signal(signal.SIGINT) or server.process.poll())

        # The last signal may arrive after the shutdown; a shell reports 130 in both cases.
        assert server.process.returncode in (130, -signal.SIGINT)


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_an_interrupt_that_also_reaches_the_workers_counts_as_the_first(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    release = waiting_app.with_suffix(".release")
    with serve(waiting_app, "--workers", "2") as server:
        running = BackgroundCall(lambda: call(server, "wait", release=str(release)))
        wait_until(Path(f"{release}.running").exists)

        for pid in workers_of(server):
            os.kill(pid, signal.SIGINT)
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: refuses_connections(server.port))
        release.touch()
        running.join(BOUND)

        assert running.result == {"result": "done"}
        assert server.process.wait(BOUND) == 130


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_draining_server_answers_and_is_not_ready_until_a_second_signal(
    serve: Any, connect: Any, request_bytes: Any, waiting_app: Path, workers: str, second: int
) -> None:
    with serve(waiting_app, "--workers", workers, "--drain", "600") as server:

        def answer(path: str, connection: Any = None) -> Any:
            connection = connection or connect(server.port)
            connection.send(request_bytes(path, None, method="GET"))
            return connection.read_response()

        kept = connect(server.port)
        assert "connection" not in answer("/healthz", kept).headers
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: all(answer("/readyz").status == 503 for _ in range(5)))
        wait_until(lambda: answer("/healthz", kept).headers.get("connection") == "close")

        connection = connect(server.port)
        connection.send(request_bytes("/functions/pid", b"{}"))
        called = connection.read_response()
        assert (called.status, called.headers["connection"]) == (200, "close")
        assert connection.is_closed_by_server()
        assert kept.is_closed_by_server()
        assert answer("/healthz").status == 200

        server.process.send_signal(second)
        assert server.process.wait(BOUND) == (0 if second == signal.SIGTERM else 130)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_draining_server_ends_by_itself(
    serve: Any, call: Any, waiting_app: Path, workers: str
) -> None:
    with serve(waiting_app, "--workers", workers, "--drain", "1") as server:
        call(server, "pid")
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(BOUND) == 0
        assert time.monotonic() - begun >= 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_ends_a_server_without_draining(serve: Any, waiting_app: Path, workers: str) -> None:
    with serve(waiting_app, "--workers", workers, "--drain", "600") as server:
        server.process.send_signal(signal.SIGINT)

        assert server.process.wait(BOUND) == 130


def test_workers_that_get_the_signal_from_systemd_as_well_drain_once(
    serve: Any, call: Any, waiting_app: Path
) -> None:
    """Contract: `KillMode=control-group`, which is systemd's default, does not end the drain."""
    with serve(waiting_app, "--workers", "2", "--drain", "600") as server:
        first = call(server, "pid")["result"]
        (second,) = wait_until(lambda: {call(server, "pid")["result"]} - {first})
        os.kill(first, signal.SIGTERM)
        assert server.stderr.readline().startswith(b"worker %d: draining" % first)

        server.process.send_signal(signal.SIGTERM)
        assert server.stderr.readline().startswith(b"worker %d: draining" % second)
        os.kill(second, signal.SIGTERM)

        assert {call(server, "pid")["result"] for _ in range(20)} <= {first, second}
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(BOUND) == 0
        assert server.stderr.read() == b""


def test_a_call_from_before_the_drain_closes_its_connection(
    serve: Any, connect: Any, request_bytes: Any, waiting_app: Path
) -> None:
    """Contract: a proxy keeps no connection that the end of the drain would close."""
    release = waiting_app.with_suffix(".release")
    with serve(waiting_app, "--drain", "600") as server:
        connection = connect(server.port)
        body = json.dumps({"release": str(release)}).encode()
        connection.send(request_bytes("/functions/wait", body))
        wait_until(Path(f"{release}.running").exists)
        server.process.send_signal(signal.SIGTERM)
        assert server.stderr.readline().startswith(b"draining for 600 seconds")
        release.touch()

        response = connection.read_response()

        assert (response.json, response.headers["connection"]) == ({"result": "done"}, "close")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(BOUND) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_shutdown_writes_nothing_to_stderr(
    serve: Any, call: Any, waiting_app: Path, number: int, workers: str
) -> None:
    with serve(waiting_app, "--workers", workers) as server:
        call(server, "pid")
        server.process.send_signal(number)
        rest = server.stderr.read().decode()
        server.process.wait(BOUND)

    assert rest == ""


def test_a_request_on_a_connection_that_was_just_accepted_is_answered(
    serve: Any, connect: Any, call: Any, request_bytes: Any, waiting_app: Path
) -> None:
    """Contract: a connection that the server accepted is not closed before its first request."""
    with serve(waiting_app) as server:
        connection = connect(server.port)
        # The server accepts connections in their order, so the first one is accepted as well.
        call(server, "pid")
        server.process.terminate()
        wait_until(lambda: refuses_connections(server.port))

        connection.send(request_bytes("/functions/pid", b"{}"))
        response = connection.read_response()

        assert response.status == 200
        assert connection.is_closed_by_server()
        assert server.process.wait(BOUND) == 0


def test_an_incomplete_request_does_not_delay_the_shutdown(
    serve: Any, connect: Any, request_bytes: Any, waiting_app: Path
) -> None:
    with serve(waiting_app) as server:
        connection = connect(server.port)
        connection.send(
            request_bytes("/functions/pid", b"{}") + request_bytes("/functions/pid")[:-5]
        )
        assert connection.read_response().status == 200

        server.process.terminate()

        # Less than the 30 seconds that the rest of a request may take otherwise.
        assert server.process.wait(20) == 0
        assert connection.read_response().status == 408


HANGING = """
import os, time
from answerback import App, Limits

app = App("hanging", limits=Limits(threads=2))

@app.tool(timeout=0.1)
def hang(until: str) -> None:
    while not os.path.exists(until):
        time.sleep(0.005)

@app.tool
def add(x: int, y: int) -> int:
    return x + y

app.run()
"""


@pytest.fixture
def hanging_app(tmp_path: Path) -> Path:
    path = tmp_path / "hanging.py"
    path.write_text(HANGING)
    return path


def test_calls_are_refused_while_every_thread_hangs_and_served_when_one_returns(
    serve: Any, connect: Any, request_bytes: Any, hanging_app: Path
) -> None:
    release = hanging_app.with_suffix(".release")
    hang = json.dumps({"until": str(release)}).encode()
    with serve(hanging_app) as server:

        def answer(*request: Any, **options: Any) -> Any:
            connection = connect(server.port)
            connection.send(request_bytes(*request, **options))
            return connection.read_response()

        # A call that times out before it has a thread holds none.
        hung = [answer("/functions/hang", hang).status for _ in range(4)]
        while (refused := answer("/functions/add")).status == 200:
            hung.append(answer("/functions/hang", hang).status)
        health = answer("/healthz", None, method="GET")
        unready = answer("/readyz", None, method="GET")
        release.touch()
        served = wait_until(lambda: (result := answer("/functions/add")).status == 200 and result)

    assert set(hung) == {504}
    assert (refused.status, refused.error) == (503, "UNAVAILABLE")
    assert health.status == 200
    assert health.json["checks"]["threads"] == {"ready": False, "limit": 2, "lost": 4}
    assert (unready.status, unready.json["status"]) == (503, "not ready")
    assert served.json == {"result": 10}


def test_hanging_threads_do_not_delay_the_shutdown(
    serve: Any, call: Any, hanging_app: Path
) -> None:
    with serve(hanging_app) as server:
        for _ in range(4):
            call(server, "hang", until=str(hanging_app.with_suffix(".never")))
        waiting = BackgroundCall(lambda: call(server, "add", x=7, y=3))
        waiting.join(BOUND)

        server.process.terminate()

        # Less than the 30 seconds that running calls get.
        assert server.process.wait(20) == 0
