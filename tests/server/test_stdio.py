"""MCP over stdio, tested with a real process."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server.processes import state_of, wait_until

FILE = """
import threading, time
from pathlib import Path
from answerback import App

app = App("wait")

@app.tool
def wait(path: str = "") -> str:
    while path and not Path(path).exists():
        time.sleep(0.002)
    return path or "done"

app.run()
"""


class Client:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout

    def send(self, id: int, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def notify(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def respond(self, id: str, result: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": id, "result": result}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def read(self) -> dict[str, Any]:
        response: dict[str, Any] = json.loads(self.stdout.readline())
        return response


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    file = tmp_path / "wait.py"
    file.write_text(FILE)
    with running(file) as process:
        yield Client(process)


@contextmanager
def running(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, str(file), "mcp"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=file.parent
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_tool_that_becomes_slow_does_not_delay_other_requests(
    client: Client, tmp_path: Path
) -> None:
    releases = [tmp_path / f"release-{number}" for number in range(3)]
    for number in range(5):
        client.send(number, "tools/call", name="wait", arguments={})
        assert client.read()["id"] == number

    for number, release in enumerate(releases):
        client.send(100 + number, "tools/call", name="wait", arguments={"path": str(release)})
        client.send(200 + number, "ping")
        assert client.read() == {"jsonrpc": "2.0", "id": 200 + number, "result": {}}
    for release in releases:
        release.touch()
    responses = [client.read() for _ in releases]

    assert {response["id"] for response in responses} == {100, 101, 102}
    assert all(response["result"]["isError"] is False for response in responses)


def test_requests_sent_before_the_end_of_stdin_are_answered(tmp_path: Path) -> None:
    file = tmp_path / "wait.py"
    file.write_text(FILE)
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "wait"}}
    lines = b"".join(json.dumps({**call, "id": id}).encode() + b"\n" for id in range(50))

    done = subprocess.run(
        [sys.executable, str(file), "mcp"], input=lines, capture_output=True, timeout=60
    )

    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [*range(50)]
    assert done.returncode == 0


READING = """
import subprocess, sys
from pathlib import Path
from answerback import App

app = App("reading")

@app.tool
def by_subprocess(started: str) -> str:
    Path(started).touch()
    return subprocess.run(["cat"], stdout=subprocess.PIPE).stdout.decode()

@app.tool
def by_itself(started: str) -> str:
    Path(started).touch()
    return sys.stdin.readline() + sys.stdin.read()

app.run()
"""


@pytest.mark.parametrize("name", ["by_subprocess", "by_itself"])
def test_a_tool_that_reads_stdin_gets_nothing_and_every_request_is_answered(
    tmp_path: Path, name: str
) -> None:
    file, started = tmp_path / "reading.py", tmp_path / "started"
    file.write_text(READING)
    with running(file) as process:
        client = Client(process)
        client.send(0, "tools/call", name=name, arguments={"started": str(started)})
        bound = time.monotonic() + 60
        while not started.exists() and time.monotonic() < bound:
            time.sleep(0.002)
        output = b""
        for number in range(1, 51):
            client.send(number, "ping")
            # Each request is sent alone, so that a tool that reads stdin could steal it.
            if select.select([client.stdout], [], [], 0.1)[0]:
                output += os.read(client.stdout.fileno(), 65536)
        output += process.communicate(timeout=60)[0]

    responses = {
        response["id"]: response["result"] for response in map(json.loads, output.splitlines())
    }
    assert responses.pop(0)["structuredContent"] == {"result": ""}
    assert responses == {number: {} for number in range(1, 51)}


ENDING = """
import asyncio
from pathlib import Path
from answerback import App, Context
from answerback.records import JSONL

app = App("ending", records=JSONL("audit.jsonl"))

@app.tool
def add(x: int) -> int:
    return x + 1

@app.tool
async def wait_async() -> str:
    try:
        Path("started").touch()
        await asyncio.sleep(100)
    finally:
        Path("cleaned_up").touch()
    return ""

@app.tool
def wait_plain(ctx: Context) -> str:
    import time
    try:
        Path("started").touch()
        while not ctx.cancelled:
            time.sleep(0.002)
    finally:
        Path("cleaned_up").touch()
    return ""

try:
    app.run()
finally:
    Path("ended").touch()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("waiting", ["wait_async", "wait_plain"])
def test_a_signal_writes_the_records_and_runs_finally_blocks(
    tmp_path: Path, number: signal.Signals, status: int, waiting: str
) -> None:
    file = tmp_path / "ending.py"
    file.write_text(ENDING)
    with running(file) as process:
        client = Client(process)
        for id in range(50):
            client.send(id, "tools/call", name="add", arguments={"x": id})
            client.read()
        client.send(50, "tools/call", name=waiting, arguments={})
        wait_until((tmp_path / "started").exists)

        process.send_signal(number)
        assert process.wait(60) == status

    assert (tmp_path / "audit.jsonl").read_bytes().count(b'"duration_us":') == 51
    assert (tmp_path / "cleaned_up").exists()
    assert (tmp_path / "ended").exists()


def test_a_non_blocking_stdin_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "wait.py"
    file.write_text(FILE)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    command = [sys.executable, str(file), "mcp"]
    process = subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    try:
        lines = []
        for id in (b"1", b"2", b"3", b"4"):
            # There is nothing to read yet when the server waits.
            wait_until(lambda: state_of(process.pid) == "S")
            os.write(writing, b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % id)
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 60)[0]
            lines.append(json.loads(process.stdout.readline()))
        os.close(writing)

        assert process.wait(60) == 0
        assert [line["id"] for line in lines] == [1, 2, 3, 4]
    finally:
        process.kill()
        process.communicate()


def test_a_stdin_that_cannot_be_read_ends_the_server_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "wait.py"
    file.write_text(FILE)
    with (tmp_path / "write_only").open("wb") as stdin:
        done = subprocess.run(
            [sys.executable, str(file), "mcp"], stdin=stdin, capture_output=True, timeout=60
        )

    assert done.stderr == b"error: cannot read stdin: [Errno 9] Bad file descriptor\n"
    assert done.returncode == 2


@pytest.mark.parametrize("is_reading", [True, False])
def test_a_terminal_that_hangs_up_ends_the_server_with_the_reason(
    tmp_path: Path, is_reading: bool
) -> None:
    """Linux fails a read that waits, but returns an empty one if it begins after the end."""
    file = tmp_path / "wait.py"
    file.write_text(FILE)
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(file), "mcp"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        os.write(controller, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]
        if not is_reading:
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: state_of(process.pid) == "T")
        os.close(controller)
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()

    assert errors.splitlines()[-1].startswith(b"error: cannot read stdin: [Errno 5]")
    assert process.returncode == 2


def test_a_byte_order_mark_before_the_first_message_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "wait.py"
    file.write_text(FILE)
    lines = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}\n'

    done = subprocess.run(
        [sys.executable, str(file), "mcp"], input=lines, capture_output=True, timeout=60
    )

    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


LIMITED = """
import threading, time, tracemalloc
from pathlib import Path
from answerback import App, Limits

app = App("limited", limits=Limits(threads=2))
running = []

@app.tool
def wait(path: str) -> int:
    running.append(path)
    try:
        Path(path + f".{len(running)}").touch()
        while not Path(path).exists():
            time.sleep(0.002)
        return len(running)
    finally:
        running.remove(path)

@app.tool(timeout=0.05)
def hang() -> None:
    threading.Event().wait()

@app.tool
async def threads() -> int:
    return threading.active_count()

@app.tool(inline=True)
def memory() -> int:
    tracemalloc.is_tracing() or tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]

app.run()
"""


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Client]:
    file = tmp_path / "limited.py"
    file.write_text(LIMITED)
    with running(file) as process:
        yield Client(process)


def result_of(response: dict[str, Any]) -> Any:
    return response["result"]["structuredContent"]["result"]


def test_no_more_plain_functions_run_than_the_limit_allows(limited: Client, tmp_path: Path) -> None:
    release = tmp_path / "release"
    for id in range(30):
        limited.send(id, "tools/call", name="wait", arguments={"path": str(release)})
    wait_until((tmp_path / "release.2").exists)
    limited.send(100, "ping")
    limited.send(101, "tools/call", name="threads", arguments={})
    others = [limited.read()["id"] for _ in range(2)]
    release.touch()
    counts = [result_of(limited.read()) for _ in range(30)]

    assert sorted(others) == [100, 101]
    assert not (tmp_path / "release.3").exists()
    assert max(counts) == 2


def test_threads_beyond_the_limit_end_after_a_burst(limited: Client, tmp_path: Path) -> None:
    release = tmp_path / "release"
    for id in range(200):
        limited.send(id, "tools/call", name="wait", arguments={"path": str(release)})
    limited.send(200, "ping")
    assert limited.read()["id"] == 200
    release.touch()
    for _ in range(200):
        limited.read()

    def threads() -> int:
        limited.send(1, "tools/call", name="threads", arguments={})
        count: int = result_of(limited.read())
        return count

    # The two of the pool, the one that reads, the main thread and that of the event loop.
    assert wait_until(lambda: threads() <= 5)


def test_a_call_that_waits_for_a_thread_can_be_cancelled(limited: Client, tmp_path: Path) -> None:
    release, never = tmp_path / "release", tmp_path / "never"
    for id in range(2):
        limited.send(id, "tools/call", name="wait", arguments={"path": str(release)})
    wait_until((tmp_path / "release.2").exists)
    limited.send(2, "tools/call", name="wait", arguments={"path": str(never)})
    limited.notify("notifications/cancelled", requestId=2)
    limited.send(3, "tools/call", name="wait", arguments={"path": str(release)})
    limited.send(4, "ping")
    limited.read()
    release.touch()

    assert sorted(limited.read()["id"] for _ in range(3)) == [0, 1, 3]
    assert not list(tmp_path.glob("never.*"))


def test_calls_are_refused_when_all_threads_are_lost(limited: Client, tmp_path: Path) -> None:
    release = tmp_path / "release"
    release.touch()
    answered: dict[str, Any] = {"isError": False}
    hung = 0
    while not answered["isError"]:
        # A call that times out before it has a thread holds none.
        limited.send(hung, "tools/call", name="hang", arguments={})
        assert limited.read()["result"]["isError"] is True
        limited.send(1000, "tools/call", name="wait", arguments={"path": str(release)})
        answered = limited.read()["result"]
        hung += 1

    assert hung >= 4

    assert "All 4 threads are held" in answered["content"][0]["text"]


def test_cancelled_calls_that_still_run_do_not_hold_up_the_others(
    limited: Client, tmp_path: Path
) -> None:
    never, release = tmp_path / "never", tmp_path / "release"
    release.touch()
    for id in range(2):
        limited.send(id, "tools/call", name="wait", arguments={"path": str(never)})
    wait_until((tmp_path / "never.2").exists)
    limited.send(2, "tools/call", name="wait", arguments={"path": str(release)})
    limited.notify("notifications/cancelled", requestId=0)

    assert limited.read()["id"] == 2


def test_names_that_no_tool_has_take_no_memory(limited: Client) -> None:
    def send_names(first: int) -> int:
        for number in range(first, first + 3000):
            limited.send(1, "tools/call", name=f"{number:01000}", arguments={})
            assert limited.read()["error"]["code"] == -32602
        limited.send(2, "tools/call", name="memory", arguments={})
        memory: int = result_of(limited.read())
        return memory

    before = send_names(0)

    assert send_names(10_000) - before < 1_000_000


GRACE = """
import sys, threading
from answerback import App

app = App("grace")

@app.tool
def work() -> int:
    print("begun", file=sys.stderr, flush=True)
    threading.Event().wait(0.4)
    return 7

@app.tool
async def work_async() -> int:
    import asyncio
    print("begun", file=sys.stderr, flush=True)
    await asyncio.sleep(20)
    return 7

app.run()
"""


@pytest.mark.parametrize("tool", ["work", "work_async"])
def test_a_call_that_ends_soon_after_sigterm_is_answered(tmp_path: Path, tool: str) -> None:
    file = tmp_path / "grace.py"
    file.write_text(GRACE)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
    process = subprocess.Popen(
        [sys.executable, str(file), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
        assert process.stderr.readline() == "begun\n"
        process.terminate()
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()

    answer = json.loads(output)
    if tool == "work":
        assert answer["result"]["structuredContent"] == {"result": 7}
    else:
        assert answer["error"]["message"] == "The call was cancelled"
