"""The lifespan of real servers: workers, signals, and one that fails, hangs or takes long."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server.processes import BOUND, BackgroundCall, wait_until

FILE = """
import asyncio, os, sys, threading, time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from answerback import App, Context, Limits

FOLDER = Path(__file__).parent
MODE = os.environ.get("MODE", "")

def note(event):
    with open(FOLDER / "events", "a") as file:
        file.write(f"{event} {os.getpid()}\\n")

class State:
    loop = None

def wait_for(name):
    while not (FOLDER / name).exists():
        time.sleep(0.005)

@contextmanager
def plain():
    note("opening")
    if MODE == "slow start":
        wait_for("go")
    if MODE == "fails at start":
        raise ValueError("no database")
    note("open")
    yield State()
    if MODE == "fails at end":
        raise ValueError("no database")
    if MODE in ("hangs at end", "blocks at end"):
        time.sleep(1000)
    note("close")

@asynccontextmanager
async def on_loop():
    note("opening")
    try:
        while MODE == "slow start" and not (FOLDER / "go").exists():
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    if MODE == "fails at start":
        raise ValueError("no database")
    note("open")
    state = State()
    state.loop = asyncio.get_running_loop()
    yield state
    if MODE == "fails at end":
        raise ValueError("no database")
    while MODE == "hangs at end":
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass
    if MODE == "blocks at end":
        time.sleep(1000)
    note("close")

app = App("served", lifespan=KIND, limits=Limits(shutdown=2))

@app.tool
async def add(x: int, y: int, ctx: Context[State]) -> int:
    assert ctx.state.loop in (None, asyncio.get_running_loop())
    note("accepted")
    await asyncio.sleep(0.001)
    return x + y

@app.tool
def block(name: str, ctx: Context[State]) -> str:
    note("running")
    wait_for(name)
    return type(ctx.state).__name__

@app.tool(inline=True)
def quick() -> int:
    return 5

if __name__ == "__main__":
    app.run()
"""


@pytest.fixture(params=["on_loop", "plain"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "served.py"
    path.write_text(FILE.replace("KIND", request.param))
    return path


def events(file: Path) -> list[str]:
    path = file.parent / "events"
    return path.read_text().splitlines() if path.exists() else []


def count(file: Path, event: str) -> int:
    return sum(line.startswith(f"{event} ") for line in events(file))


@pytest.mark.parametrize("workers", [1, 3])
def test_sigterm_under_load_answers_every_request_and_closes_what_was_opened(
    serve: Any, connect: Any, request_bytes: Any, file: Path, workers: int
) -> None:
    answered: list[int] = []
    stop = threading.Event()

    def load(port: int) -> None:
        while not stop.is_set():
            try:
                connection = connect(port)
            except OSError:
                return
            try:
                connection.send(request_bytes("/functions/add"))
                answered.append(connection.read_response().status)
            except (OSError, IndexError):
                return  # No worker had accepted the connection when the socket was closed.
            finally:
                connection.close()

    with serve(file, "--workers", str(workers)) as server:
        wait_until(lambda: count(file, "open") == workers)
        threads = [BackgroundCall(lambda: load(server.port)) for _ in range(8)]
        wait_until(lambda: len(answered) > 100)
        blocked = BackgroundCall(lambda: call_block(connect, request_bytes, server.port))
        wait_until(lambda: count(file, "running"))

        server.process.send_signal(signal.SIGTERM)
        (file.parent / "release").touch()
        status = server.process.wait(BOUND)
        stop.set()
        for thread in [*threads, blocked]:
            thread.join(BOUND)

    assert status == 0
    assert count(file, "open") == count(file, "close") == workers
    assert {line.split()[1] for line in events(file) if line.startswith("open ")} == {
        line.split()[1] for line in events(file) if line.startswith("close ")
    }
    assert len(answered) == count(file, "accepted")
    assert set(answered) == {200}
    assert blocked.result == {"result": "State"}


def call_block(connect: Any, request_bytes: Any, port: int) -> Any:
    connection = connect(port)
    connection.send(request_bytes("/functions/block", b'{"name":"release"}'))
    return connection.read_response().json


def served(file: Path, mode: str, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(file), "serve", "--port", "0", *flags],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MODE": mode},
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_one_that_fails_at_the_start_ends_the_server_with_its_reason(
    file: Path, workers: int
) -> None:
    process = served(file, "fails at start", "--workers", str(workers))
    _, errors = process.communicate(timeout=BOUND)

    assert process.returncode != 0
    assert "the lifespan failed to start: ValueError: no database" in errors
    assert 'raise ValueError("no database")' in errors
    assert count(file, "open") == 0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("mode", ["fails at end", "hangs at end", "blocks at end"])
def test_one_that_fails_or_hangs_at_the_end_is_reported_and_bounded(
    file: Path, mode: str, workers: int
) -> None:
    process = served(file, mode, "--workers", str(workers))
    wait_until(lambda: count(file, "open") == workers)

    process.terminate()
    _, errors = process.communicate(timeout=BOUND)

    reason = "ValueError: no database" if mode == "fails at end" else "did not end within 2 seconds"
    assert process.returncode == 1
    assert reason in errors


@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_during_a_long_start_ends_the_server(file: Path, workers: int) -> None:
    process = served(file, "slow start", "--workers", str(workers))
    wait_until(lambda: count(file, "opening") == workers)

    process.terminate()
    process.communicate(timeout=BOUND)

    assert process.returncode == 0
    assert count(file, "open") == 0


def test_requests_wait_for_a_start_that_takes_long(
    serve: Any, connect: Any, request_bytes: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODE", "slow start")
    with serve(file, "--workers", "2") as server:
        wait_until(lambda: count(file, "opening") == 2)
        connection = connect(server.port)
        connection.send(request_bytes("/functions/add"))

        (file.parent / "go").touch()
        response = connection.read_response()

    assert response.json == {"result": 10}
    assert count(file, "open") == count(file, "close") == 2


@contextmanager
def on_stdio(file: Path, mode: str = "") -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, str(file), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"MODE": mode},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def send(process: subprocess.Popen[bytes], id: int, method: str, **params: Any) -> None:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def read(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test"}}


def test_on_stdio_initialize_and_lists_are_answered_while_it_starts(file: Path) -> None:
    with on_stdio(file, "slow start") as process:
        wait_until(lambda: count(file, "opening"))
        send(process, 1, "tools/call", name="add", arguments={"x": 1, "y": 2})
        send(process, 2, "tools/call", name="quick", arguments={})
        send(process, 3, "initialize", **HELLO)
        send(process, 4, "tools/list")
        early = [read(process)["id"], read(process)["id"]]
        (file.parent / "go").touch()
        late = {reply["id"]: reply["result"] for reply in (read(process), read(process))}
        assert process.stdin is not None
        process.stdin.close()
        status = process.wait(BOUND)

    assert early == [3, 4]
    assert late[1]["structuredContent"] == {"result": 3}
    assert late[2]["structuredContent"] == {"result": 5}
    assert status == 0
    assert count(file, "open") == count(file, "close") == 1


def test_on_stdio_a_call_that_is_cancelled_while_it_waits_does_not_run(file: Path) -> None:
    with on_stdio(file, "slow start") as process:
        wait_until(lambda: count(file, "opening"))
        send(process, 1, "tools/call", name="add", arguments={"x": 1, "y": 2})
        # The call begins to wait while these are answered.
        for _ in range(100):
            send(process, 4, "ping")
            read(process)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        assert process.stdin is not None
        process.stdin.write(json.dumps(cancelled | {"params": {"requestId": 1}}).encode() + b"\n")
        send(process, 2, "ping")
        answers = [read(process)]
        (file.parent / "go").touch()
        send(process, 3, "tools/call", name="add", arguments={"x": 1, "y": 2})
        answers.append(read(process))
        process.stdin.close()
        status = process.wait(BOUND)
        assert process.stderr is not None
        errors = process.stderr.read()

    assert [answer["id"] for answer in answers] == [2, 3]
    assert count(file, "accepted") == 1
    assert (status, errors) == (0, b"")


def end_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize(
    ("end", "status"),
    [(end_input, 0), (subprocess.Popen.terminate, 143)],
    ids=["end of input", "SIGTERM"],
)
def test_on_stdio_the_end_of_the_input_and_sigterm_close_it(
    file: Path, end: Callable[[subprocess.Popen[bytes]], None], status: int
) -> None:
    with on_stdio(file) as process:
        send(process, 1, "tools/call", name="add", arguments={"x": 1, "y": 2})
        answer = read(process)
        end(process)

        assert process.wait(BOUND) == status

    assert answer["result"]["structuredContent"] == {"result": 3}
    assert count(file, "open") == count(file, "close") == 1


@pytest.mark.parametrize("mode", ["fails at end", "hangs at end", "blocks at end"])
def test_on_stdio_one_that_fails_or_hangs_at_the_end_is_reported_and_bounded(
    file: Path, mode: str
) -> None:
    with on_stdio(file, mode) as process:
        # A call is answered once the lifespan has started.
        send(process, 1, "tools/call", name="add", arguments={"x": 1, "y": 2})
        read(process)
        end_input(process)

        assert process.wait(BOUND) == 1


def test_on_stdio_one_that_fails_at_the_start_ends_the_server(
    file: Path,
) -> None:
    with on_stdio(file, "fails at start") as process:
        status = process.wait(BOUND)
        assert process.stdout is not None
        assert process.stderr is not None
        output, errors = process.stdout.read(), process.stderr.read()

    assert status != 0
    assert b"error: the lifespan failed to start: ValueError: no database" in errors
    assert b"Traceback" in errors
    assert output == b""


def test_on_stdio_a_waiting_call_is_answered_when_the_start_fails(tmp_path: Path) -> None:
    path = tmp_path / "served.py"
    text = FILE.replace("KIND", "plain")
    path.write_text(text.replace('wait_for("go")', 'wait_for("go")\n        raise OSError("disk")'))
    with on_stdio(path, "slow start") as process:
        send(process, 1, "tools/call", name="add", arguments={"x": 1, "y": 2})
        send(process, 2, "ping")
        read(process)
        (tmp_path / "go").touch()
        answer = read(process)
        status = process.wait(BOUND)

    assert answer["id"] == 1
    assert answer["result"]["isError"] is True
    assert "could not start" in answer["result"]["content"][0]["text"]
    assert status != 0


@pytest.mark.parametrize("mode", ["slow start", "hangs at end"])
def test_on_stdio_sigterm_is_bounded_during_the_start_and_a_hanging_end(
    file: Path, mode: str
) -> None:
    with on_stdio(file, mode) as process:
        wait_until(lambda: count(file, "opening" if mode == "slow start" else "open"))
        # The handler of the signal is there once a message is answered.
        send(process, 1, "ping")
        read(process)
        process.terminate()

        assert process.wait(60) == 143


@pytest.mark.parametrize("wire", ["call", "cgi"])
def test_around_one_call_an_end_that_hangs_is_reported_and_bounded(file: Path, wire: str) -> None:
    body = b'{"x":1,"y":2}'
    request = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/add",
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "application/json",
    }
    arguments = ["call", "add", "x=1", "y=2"] if wire == "call" else ["cgi"]

    done = subprocess.run(
        [sys.executable, str(file), *arguments],
        input=body,
        env={**os.environ, **request, "MODE": "hangs at end"},
        capture_output=True,
        timeout=BOUND,
        check=False,
    )

    assert done.stdout.rstrip().endswith(b'{"result":3}')
    assert b"the lifespan did not end within 2 seconds" in done.stderr
    assert done.returncode == 0
    assert count(file, "close") == 0


MOUNTED = """
from fastapi import FastAPI
from served import app

host = FastAPI(lifespan=app.lifespan)
host.mount("/tools", app.asgi())
direct = app.asgi()
"""


@pytest.mark.parametrize("target", ["host", "direct"])
@pytest.mark.parametrize("mode", ["", "fails at start"])
def test_under_another_server_it_runs_by_the_hosts_lifespan_or_the_protocol_of_asgi(
    file: Path, target: str, mode: str, connect: Any, request_bytes: Any
) -> None:
    (file.parent / "mounted.py").write_text(MOUNTED)
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", f"mounted:{target}", "--port", "0"],
        cwd=file.parent,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MODE": mode},
    )
    try:
        assert process.stderr is not None
        lines: list[str] = []
        while (line := process.stderr.readline()) and "running on" not in line:
            lines.append(line)
        if mode:
            assert process.wait(BOUND) == 3
            assert "no database" in "".join(lines)
            return
        connection = connect(int(line.split(":")[-1].split()[0]))
        path = "/tools/functions/add" if target == "host" else "/functions/add"
        connection.send(request_bytes(path, b'{"x":7,"y":3}', "Content-Type: application/json"))
        answer = connection.read_response().json
        process.terminate()
        process.wait(BOUND)
    finally:
        process.kill()
        process.communicate()

    assert answer == {"result": 10}
    assert count(file, "open") == count(file, "close") == 1
