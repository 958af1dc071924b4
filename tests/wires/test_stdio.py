"""MCP over stdio, tested with a real process."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

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
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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
        [sys.executable, str(file), "mcp"], input=lines, capture_output=True, timeout=20
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
        bound = time.monotonic() + 20
        while not started.exists() and time.monotonic() < bound:
            time.sleep(0.002)
        output = b""
        for number in range(1, 51):
            client.send(number, "ping")
            # Each request is sent alone, so that a tool that reads stdin could steal it.
            if select.select([client.stdout], [], [], 0.1)[0]:
                output += os.read(client.stdout.fileno(), 65536)
        output += process.communicate(timeout=20)[0]

    responses = {
        response["id"]: response["result"] for response in map(json.loads, output.splitlines())
    }
    assert responses.pop(0)["structuredContent"] == {"result": ""}
    assert responses == {number: {} for number in range(1, 51)}
