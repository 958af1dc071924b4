"""A client at the other end of a pipe, which sends whatever it likes and checks all it gets."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
EVERYTHING = ROOT / "tests" / "apps" / "everything.py"
HOSTILE = ROOT / "tests" / "apps" / "hostile.py"
BOUND = 20.0
"""Seconds after which what should have come will not."""
SECRETS = (b"Traceback", b"hunter2", str(ROOT).encode(), b"site-packages", b'File \\"')

Json = Any


def refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def checked(text: bytes) -> Json:
    """What was sent, if it may be sent at all."""
    for secret in SECRETS:
        assert secret not in text, f"an answer holds {secret!r}"
    said = json.loads(text.decode("utf-8", "strict"), parse_constant=refuse_constant)
    for frame in said if isinstance(said, list) else [said]:
        assert frame["jsonrpc"] == "2.0"
        assert frame.get("id", "") is not None
        if "method" not in frame:
            assert ("result" in frame) != ("error" in frame)
        if "error" in frame:
            assert isinstance(frame["error"]["code"], int)
            assert isinstance(frame["error"]["message"], str)
    return said


def request(id: Json, method: str, params: Json = None) -> dict[str, Json]:
    frame: dict[str, Json] = {"jsonrpc": "2.0", "id": id, "method": method}
    return frame if params is None else frame | {"params": params}


def call(id: Json, name: str, **arguments: Json) -> dict[str, Json]:
    return request(id, "tools/call", {"name": name, "arguments": arguments})


def notification(method: str, **params: Json) -> dict[str, Json]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel(id: Json) -> dict[str, Json]:
    return notification("notifications/cancelled", requestId=id)


class Pipe:
    def __init__(self, process: subprocess.Popen[bytes], errors: Any) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin = process.stdin.fileno()
        self.stdout = process.stdout.fileno()
        self.others: list[Json] = []
        """What came while something else was waited for."""
        self._errors = errors
        self._buffer = b""
        self._last = 0

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self.stdin, left) :]

    def send(self, *messages: Json) -> None:
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def line(self, bound: float = BOUND) -> bytes:
        """The next line; b"" at the end."""
        until = time.monotonic() + bound
        while b"\n" not in self._buffer:
            ready = select.select([self.stdout], [], [], max(0.0, until - time.monotonic()))[0]
            if not ready:
                raise TimeoutError("the server says nothing")
            chunk = os.read(self.stdout, 1 << 20)
            if not chunk:
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def receive(self, bound: float = BOUND) -> Json:
        line = self.line(bound)
        assert line, f"the server ended: {self.stderr()[-2000:]}"
        return checked(line)

    def answer(self, id: Json) -> Json:
        """The answer under *id*; what comes before it is put by."""
        while True:
            frame = self.receive()
            if isinstance(frame, dict) and "method" not in frame and frame.get("id") == id:
                return frame
            self.others.append(frame)

    def ask(self, method: str, params: Json = None) -> Json:
        self._last += 1
        id = f"asked-{self._last}"
        self.send(request(id, method, params))
        return self.answer(id)

    def initialize(self, version: str = "2025-11-25", **capabilities: Json) -> Json:
        client = {"name": "attacker", "version": "1"}
        opening = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
        return self.ask("initialize", opening)["result"]

    def still_serves(self) -> None:
        arguments = {"x": 20, "y": 22}
        said = self.ask("tools/call", {"name": "add", "arguments": arguments})
        assert said["result"]["isError"] is False
        assert said["result"]["content"][0]["text"] in ("42", '{"result":42}')

    def settle(self) -> list[Json]:
        """All that was put by, up to an answer to what is asked now."""
        self.ask("ping")
        put_by, self.others = self.others, []
        return put_by

    def status(self, name: str) -> int:
        """A number from what the kernel knows: VmRSS and VmHWM in kB, or Threads."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))

    def stderr(self) -> str:
        self._errors.seek(0)
        written: bytes = self._errors.read()
        return written.decode()

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close_stdout(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()

    def rest(self) -> list[Json]:
        """All that still comes, to the end."""
        return [checked(line) for line in iter(self.line, b"")]

    def end(self) -> int:
        """Close stdin, and wait until the server ends by itself."""
        self.close_stdin()
        return self.process.wait(BOUND)


@contextmanager
def pipe(path: Path = HOSTILE) -> Iterator[Pipe]:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, str(path), "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
        )
        try:
            yield Pipe(process, errors)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with suppress(OSError):
                    stream.close()


def wait_until(what: Any, bound: float = BOUND) -> None:
    """Wait for a condition of another process, which can only be looked at."""
    until = time.monotonic() + bound
    pause = select.poll()
    while not what():
        assert time.monotonic() < until, "it did not come to be"
        pause.poll(5)


def says(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text
