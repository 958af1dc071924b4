"""MCP over stdio with every kind of descriptor, large lines, a slow client and a blocked loop."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.server.processes import wait_until
from tests.server.test_stdio import Client

FILE = """
import os, sys, time
from contextlib import asynccontextmanager
from answerback import App

@asynccontextmanager
async def lifespan(app):
    yield

app = App("descriptors", lifespan=LIFESPAN)

@app.tool
def size(text: str) -> int:
    return len(text)

@app.tool
async def size_async(text: str) -> int:
    return len(text)

@app.tool
async def block(path: str) -> None:
    open(path, "w").close()
    time.sleep(600)

@app.tool
def fork(path: str) -> int:
    child = os.fork()
    if child:
        return child
    while not os.path.exists(path):
        time.sleep(0.002)
    return 0

app.run()
"""
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def message(id: int, method: str, **params: Any) -> bytes:
    text = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    return text.encode() + b"\n"


def call(id: int, name: str = "size", **arguments: Any) -> bytes:
    return message(id, "tools/call", name=name, arguments=arguments)


def results(output: bytes) -> dict[int, Any]:
    found = map(json.loads, output.splitlines())
    return {each["id"]: each["result"].get("structuredContent") for each in found}


@pytest.fixture(params=["None", "lifespan"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """An app with a lifespan starts its event loop before the first message."""
    path = tmp_path / "descriptors.py"
    path.write_text(FILE.replace("LIFESPAN", request.param))
    return path


@pytest.fixture
def process(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, str(file), "mcp"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()


def test_requests_in_a_file_are_answered_until_its_end(file: Path, tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    calls = b"".join(call(id, text="x" * 1000) for id in range(1, 300))
    requests.write_bytes(message(0, "initialize", **INITIALIZE) + calls.rstrip())
    with requests.open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, str(file), "mcp"], stdin=stdin, capture_output=True, timeout=60
        )

    assert results(done.stdout) == {0: None} | {id: {"result": 1000} for id in range(1, 300)}
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_empty_stdin_ends_the_server(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(file), "mcp"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_stdin_and_stdout_may_be_one_socket_which_stays_blocking(file: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as responses:
        command = [sys.executable, str(file), "mcp"]
        process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno())
        try:
            ours.sendall(message(0, "initialize", **INITIALIZE) + call(1, text="abc"))
            found = results(responses.readline() + responses.readline())
            assert os.get_blocking(theirs.fileno())
            ours.shutdown(socket.SHUT_WR)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()

    assert found == {0: None, 1: {"result": 3}}


def test_lines_typed_at_a_terminal_are_answered_until_ctrl_d(file: Path) -> None:
    controller, terminal = pty.openpty()
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    process = subprocess.Popen(
        [sys.executable, str(file), "mcp"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        os.write(controller, call(1, text="abc"))
        first = process.stdout.readline()
        os.write(controller, call(2, text="abcd") + b"\x04")
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(controller)
        os.close(terminal)

    assert results(first + rest) == {1: {"result": 3}, 2: {"result": 4}}
    assert process.returncode == 0


@pytest.mark.parametrize("is_first", [True, False])
def test_a_line_of_10_mb_is_answered_and_a_longer_one_refused(
    process: subprocess.Popen[bytes], is_first: bool
) -> None:
    client = Client(process)
    if not is_first:
        client.stdin.write(call(0, text=""))
        client.stdin.flush()
        client.read()
    client.stdin.write(call(1, text="x" * 10_400_000))
    client.stdin.flush()
    long = client.read()
    client.stdin.write(call(2, text="x" * 11_000_000))
    client.stdin.flush()
    refused = client.read()
    client.stdin.write(call(3, text="abc"))
    client.stdin.flush()
    next = client.read()

    assert long["result"]["structuredContent"] == {"result": 10_400_000}
    assert refused["error"]["message"] == "Message larger than 10485760 bytes"
    assert next["result"]["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("tool", ["size", "size_async"])
def test_a_client_that_does_not_read_is_not_read_from_and_then_gets_every_answer(
    process: subprocess.Popen[bytes], tool: str
) -> None:
    client = Client(process)
    os.set_blocking(client.stdin.fileno(), False)
    sent, part = 0, b""

    def fills_the_pipe() -> bool:
        """The server has stopped reading once nothing more can be written for a second."""
        nonlocal sent, part
        try:
            while sent < 100_000:
                part = part or call(sent + 1, tool, text="x" * 100)
                part = part[os.write(client.stdin.fileno(), part) :]
                sent += not part
        except BlockingIOError:
            return not select.select([], [client.stdin], [], 1.0)[1]
        return True

    wait_until(fills_the_pipe)
    stopped = sent
    os.set_blocking(client.stdin.fileno(), True)
    # A thread writes the end of the last line, because the pipe is full.
    finishing = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=client.stdin)
    assert finishing.stdin is not None
    finishing.stdin.write(part)
    finishing.stdin.close()
    client.stdin.close()
    assert process.stdout is not None
    found = results(process.stdout.read())
    finishing.wait(60)

    assert stopped < 100_000
    assert found == {id: {"result": 100} for id in range(1, stopped + 1 + bool(part))}
    assert process.wait(60) == 0


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "closed"])
def test_a_tool_that_blocks_the_loop_does_not_keep_the_process_alive(
    process: subprocess.Popen[bytes], tmp_path: Path, how: str
) -> None:
    client = Client(process)
    client.stdin.write(call(1, "block", path=str(tmp_path / "blocked")))
    client.stdin.flush()
    wait_until((tmp_path / "blocked").exists)
    if how == "closed":
        client.stdin.close()
        client.stdout.close()
    else:
        process.send_signal(signal.Signals[how])

    assert process.wait(60) == {"SIGTERM": 143, "SIGINT": 130, "closed": 0}[how]


def test_a_forked_child_neither_reads_requests_nor_answers(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    client = Client(process)
    client.stdin.write(call(1, "fork", path=str(tmp_path / "go")))
    client.stdin.flush()
    child = client.read()["result"]["structuredContent"]["result"]
    try:
        (tmp_path / "go").touch()
        for id in range(2, 50):
            client.stdin.write(call(id, text="abc"))
            client.stdin.flush()
            assert client.read()["id"] == id
        client.stdin.close()
        # The end of the output, although the child may still be there.
        assert client.stdout.read() == b""
    finally:
        os.kill(child, signal.SIGKILL)
