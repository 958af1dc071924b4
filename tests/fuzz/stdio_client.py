"""A client on stdio that can send anything and checks every message that it receives."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
EVERYTHING = ROOT / "tests" / "apps" / "everything.py"
HOSTILE = ROOT / "tests" / "apps" / "hostile.py"
TIMEOUT = 60.0
"""Seconds to wait for a message or a condition before the test fails."""
SECRETS = (b"Traceback", b"hunter2", str(ROOT).encode(), b"site-packages", b'File \\"')
"""Texts that must never be sent to a client."""

Json = Any


def refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def checked_message(text: bytes) -> Json:
    """Decode a message or a batch; fails if it is malformed or contains a secret."""
    for secret in SECRETS:
        assert secret not in text, f"a message contains {secret!r}"
    message = json.loads(text.decode("utf-8", "strict"), parse_constant=refuse_constant)
    for frame in message if isinstance(message, list) else [message]:
        assert frame["jsonrpc"] == "2.0"
        assert frame.get("id", "") is not None
        if "method" not in frame:
            assert ("result" in frame) != ("error" in frame)
        if "error" in frame:
            assert isinstance(frame["error"]["code"], int)
            assert isinstance(frame["error"]["message"], str)
    return message


def request(id: Json, method: str, params: Json = None) -> dict[str, Json]:
    frame: dict[str, Json] = {"jsonrpc": "2.0", "id": id, "method": method}
    return frame if params is None else frame | {"params": params}


def call(id: Json, name: str, **arguments: Json) -> dict[str, Json]:
    return request(id, "tools/call", {"name": name, "arguments": arguments})


def notification(method: str, **params: Json) -> dict[str, Json]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel(id: Json) -> dict[str, Json]:
    return notification("notifications/cancelled", requestId=id)


class StdioClient:
    def __init__(self, process: subprocess.Popen[bytes], errors: Any) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin = process.stdin.fileno()
        self.stdout = process.stdout.fileno()
        self.other_messages: list[Json] = []
        """Messages that arrived while the client waited for a certain response."""
        self._errors = errors
        self._buffer = b""
        self._last_id = 0

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self.stdin, left) :]

    def send(self, *messages: Json) -> None:
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def read_line(self, timeout: float = TIMEOUT) -> bytes:
        """The next line; b"" at the end of the output."""
        until = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            ready = select.select([self.stdout], [], [], max(0.0, until - time.monotonic()))[0]
            if not ready:
                raise TimeoutError("the server sent nothing")
            chunk = os.read(self.stdout, 1 << 20)
            if not chunk:
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def receive(self, timeout: float = TIMEOUT) -> Json:
        """The next message."""
        line = self.read_line(timeout)
        assert line, f"the server ended: {self.stderr()[-2000:]}"
        return checked_message(line)

    def receive_response(self, id: Json) -> Json:
        """The response with *id*; earlier messages go to `other_messages`."""
        while True:
            message = self.receive()
            if isinstance(message, dict) and "method" not in message and message.get("id") == id:
                return message
            self.other_messages.append(message)

    def request(self, method: str, params: Json = None) -> Json:
        """Send a request and return its response."""
        self._last_id += 1
        id = f"request-{self._last_id}"
        self.send(request(id, method, params))
        return self.receive_response(id)

    def initialize(self, version: str = "2025-11-25", **capabilities: Json) -> Json:
        client = {"name": "attacker", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
        return self.request("initialize", params)["result"]

    def still_serves(self) -> bool:
        """True if the server answers a call; fails with the response if it does not."""
        arguments = {"x": 20, "y": 22}
        response = self.request("tools/call", {"name": "add", "arguments": arguments})
        assert response["result"]["isError"] is False
        assert response["result"]["content"][0]["text"] in ("42", '{"result":42}')
        return True

    def drain(self) -> list[Json]:
        """Send a ping and return all messages that arrived before its response."""
        self.request("ping")
        drained, self.other_messages = self.other_messages, []
        return drained

    def status(self, name: str) -> int:
        """A number from the kernel: VmRSS and VmHWM in kB, or Threads."""
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

    def read_to_end(self) -> list[Json]:
        """All messages until the server closes its output."""
        return [checked_message(line) for line in iter(self.read_line, b"")]

    def close_and_wait(self) -> int:
        """Close stdin, wait until the server ends, and return its exit status."""
        self.close_stdin()
        return self.process.wait(TIMEOUT)


@contextmanager
def stdio_client(path: Path = HOSTILE) -> Iterator[StdioClient]:
    """Start the app at *path* on stdio, and kill it at the end."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, str(path), "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
        )
        try:
            yield StdioClient(process, errors)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with suppress(OSError):
                    stream.close()


def first_question(client: StdioClient, tool: str) -> Json:
    """Call a tool with the id "asking", and return the question that it asks the client."""
    client.send(call("asking", tool))
    question = client.receive()
    assert "method" in question
    return question


def wait_until(condition: Callable[[], object], timeout: float = TIMEOUT) -> bool:
    """Poll a condition of another process; True once it holds, fails after *timeout*."""
    until = time.monotonic() + timeout
    pause = select.poll()
    while not condition():
        assert time.monotonic() < until, f"the condition did not hold within {timeout} seconds"
        pause.poll(5)
    return True


def file_holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text
