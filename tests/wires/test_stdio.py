"""MCP over stdin and stdout, as far as the process is the subject."""

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

app = App("moody")

@app.tool
def moody(path: str = "") -> str:
    while path and not Path(path).exists():
        time.sleep(0.002)
    return path or "brief"

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
        answer: dict[str, Any] = json.loads(self.stdout.readline())
        return answer


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    file = tmp_path / "moody.py"
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


def test_a_tool_that_used_to_be_brief_does_not_hold_up_others_when_it_is_not(
    client: Client, tmp_path: Path
) -> None:
    signs = [tmp_path / f"sign-{number}" for number in range(3)]
    for number in range(5):
        client.send(number, "tools/call", name="moody", arguments={})
        assert client.read()["id"] == number

    for number, sign in enumerate(signs):
        client.send(100 + number, "tools/call", name="moody", arguments={"path": str(sign)})
        client.send(200 + number, "ping")
        assert client.read() == {"jsonrpc": "2.0", "id": 200 + number, "result": {}}
    for sign in signs:
        sign.touch()
    answers = [client.read() for _ in signs]

    assert {answer["id"] for answer in answers} == {100, 101, 102}
    assert all(answer["result"]["isError"] is False for answer in answers)


def test_what_was_asked_before_stdin_ended_is_answered(tmp_path: Path) -> None:
    file = tmp_path / "moody.py"
    file.write_text(FILE)
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "moody"}}
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
def by_subprocess(sign: str) -> str:
    Path(sign).touch()
    return subprocess.run(["cat"], stdout=subprocess.PIPE).stdout.decode()

@app.tool
def by_itself(sign: str) -> str:
    Path(sign).touch()
    return sys.stdin.readline() + sys.stdin.read()

app.run()
"""


@pytest.mark.parametrize("name", ["by_subprocess", "by_itself"])
def test_a_tool_that_reads_stdin_reads_nothing_and_every_request_is_answered(
    tmp_path: Path, name: str
) -> None:
    file, sign = tmp_path / "reading.py", tmp_path / "sign"
    file.write_text(READING)
    with running(file) as process:
        client = Client(process)
        client.send(0, "tools/call", name=name, arguments={"sign": str(sign)})
        bound = time.monotonic() + 20
        while not sign.exists() and time.monotonic() < bound:
            time.sleep(0.002)
        output = b""
        for number in range(1, 51):
            client.send(number, "ping")
            # Each is sent alone, so that whoever reads stdin could get it.
            if select.select([client.stdout], [], [], 0.1)[0]:
                output += os.read(client.stdout.fileno(), 65536)
        output += process.communicate(timeout=20)[0]

    answers = {answer["id"]: answer["result"] for answer in map(json.loads, output.splitlines())}
    assert answers.pop(0)["structuredContent"] == {"result": ""}
    assert answers == {number: {} for number in range(1, 51)}
