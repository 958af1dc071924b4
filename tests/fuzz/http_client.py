"""An HTTP client that can send anything to a served app and checks every response."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.frames import PREFIX, STATELESS, meta
from tests.fuzz.stdio_client import (
    HOSTILE,
    TIMEOUT,
    Json,
    call,
    checked_message,
    request,
    wait_until,
)

JSON = "application/json"
EVENTS = "text/event-stream"
BOTH = f"{JSON}, {EVENTS}"
STARTED = "Ctrl-C ends it."
"""The last words that a server writes to stderr before it serves."""


@dataclass
class HttpResponse:
    status: int
    headers: Mapping[str, str]
    frames: list[Json] = field(default_factory=list)
    """The JSON-RPC messages in the body: of JSON one, of an event stream one for each event."""

    @property
    def frame(self) -> Json:
        """The last frame; fails if there is none."""
        assert self.frames, f"no frame, status {self.status}"
        return self.frames[-1]

    @property
    def code(self) -> int:
        """The code of the JSON-RPC error."""
        code: int = self.frame["error"]["code"]
        return code


class ServedApp:
    """An app served over HTTP by another process, and a connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Any) -> None:
        self.process = process
        self._errors = errors
        self._sockets: list[socket.socket] = []
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", self._find_port(), timeout=TIMEOUT
        )

    @property
    def port(self) -> int:
        assert self._connection.port is not None
        return self._connection.port

    def _find_port(self) -> int:
        wait_until(lambda: STARTED in self.stderr() or self.process.poll() is not None)
        found = re.search(r"http://\S+?:(\d+)", self.stderr())
        assert found is not None, self.stderr()[-2000:]
        return int(found.group(1))

    def stderr(self) -> str:
        self._errors.seek(0)
        written: bytes = self._errors.read()
        return written.decode()

    def log(self) -> str:
        """All that the server wrote to stderr after it had started."""
        _, started, log = self.stderr().partition(STARTED)
        assert started
        return log.strip()

    def send(
        self,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "POST",
        path: str = "/mcp",
        first_event_only: bool = False,
    ) -> HttpResponse:
        """Send a request; *first_event_only* closes an event stream after its first event."""
        all_headers = {"Content-Type": JSON, "Accept": BOTH, **(headers or {})}
        all_headers = {name: value for name, value in all_headers.items() if value != ""}
        for last in (False, True):
            try:
                self._connection.request(method, path, body, all_headers)
                return self._read(self._connection.getresponse(), first_event_only=first_event_only)
            except (ConnectionError, http.client.HTTPException):
                # The server closes a connection that was idle for some seconds.
                self._connection.close()
                if last:
                    raise
        raise AssertionError

    def _read(self, received: http.client.HTTPResponse, *, first_event_only: bool) -> HttpResponse:
        headers = {name.lower(): value for name, value in received.getheaders()}
        response = HttpResponse(received.status, headers)
        media_type = headers.get("content-type", "")
        if media_type == EVENTS:
            for data in event_data(received):
                response.frames.append(checked_message(data))
                if first_event_only:
                    self._connection.close()
                    break
            return response
        body = received.read()
        if body:
            assert media_type == JSON, f"{received.status} {media_type}"
            response.frames.append(checked_message(body))
        return response

    def post(self, message: Json, headers: Mapping[str, str] | None = None) -> HttpResponse:
        return self.send(json.dumps(message).encode(), headers)

    def post_stateless(
        self, message: Json, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Post a message with the headers that mirror it."""
        return self.post(message, {**mirrored_headers(message), **(headers or {})})

    def initialize(self, version: str = "2025-11-25", **capabilities: Json) -> dict[str, str]:
        """Open a session and return the headers of its requests."""
        client = {"name": "attacker", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
        response = self.post(request(0, "initialize", params))
        assert response.status == 200
        id = response.headers["mcp-session-id"]
        return {"Mcp-Session-Id": id, "Mcp-Protocol-Version": version}

    def still_serves(self) -> bool:
        """True if the server answers calls in both eras; fails with the response if not."""
        for frame, headers in (
            (call("fine", "add", x=20, y=22), self.initialize()),
            (call("fine", "add_in_thread", x=20, y=22), {}),
        ):
            response = self.post(frame, headers)
            assert response.status == 200
            assert response.frame["id"] == "fine"
            assert response.frame["result"]["isError"] is False
        response = self.post_stateless(stateless_call("fine", "add_async", x=20, y=22))
        assert response.status == 200
        assert response.frame["result"]["structuredContent"] == {"result": 42}
        return True

    def connect(self) -> socket.socket:
        """Open another connection to the server."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets.append(connection)
        return connection

    def start_post(self, message: Json, headers: Mapping[str, str]) -> socket.socket:
        """Send a request on a new connection; the caller reads its response, or closes it."""
        connection = self.connect()
        connection.sendall(raw_post(json.dumps(message).encode(), headers))
        return connection

    def status(self, name: str) -> int:
        """A number from the kernel: VmRSS and VmHWM in kB, or Threads."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))

    def open_files(self) -> int:
        """The number of the server's file descriptors."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def close(self) -> None:
        self._connection.close()
        for connection in self._sockets:
            connection.close()


def event_data(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The data of each event that has data."""
    while line := response.readline():
        if line.startswith(b"data:") and line[5:].strip():
            yield line[5:].strip()


def raw_post(body: bytes, headers: Mapping[str, str], path: str = "/mcp") -> bytes:
    """The bytes of a POST request."""
    all_headers = {
        "Host": "127.0.0.1",
        "Content-Type": JSON,
        "Accept": BOTH,
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in all_headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def stateless_call(id: Json, name: str, /, **arguments: Json) -> Json:
    frame = call(id, name, **arguments)
    frame["params"]["_meta"] = meta(STATELESS)
    del frame["params"]["_meta"]["progressToken"]
    return frame


def stateless_request(id: Json, method: str, **params: Json) -> Json:
    return request(id, method, {**params, "_meta": meta(STATELESS)})


def mirrored_headers(message: Json) -> dict[str, str]:
    """The headers that repeat a message's version, method and name, as far as it has them."""
    params = message.get("params") if isinstance(message, dict) else None
    params = params if isinstance(params, dict) else {}
    own_meta = params.get("_meta")
    version = own_meta.get(PREFIX + "protocolVersion") if isinstance(own_meta, dict) else None
    name = params.get("uri" if message.get("method") == "resources/read" else "name")
    values = {
        "Mcp-Protocol-Version": version,
        "Mcp-Method": message.get("method"),
        "Mcp-Name": name,
    }
    return {
        header: header_value(value) for header, value in values.items() if isinstance(value, str)
    }


def header_value(text: str) -> str:
    """The text itself if a header can carry it, else its base64."""
    plain = text.isascii() and text.isprintable() and text == text.strip() and len(text) < 1000
    encoded = b64encode(text.encode("utf-8", "replace")[:4000]).decode()
    return text if plain and text else f"=?base64?{encoded}?="


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """The bytes received up to *end*, and perhaps some after it."""
    received = b""
    while end not in received:
        chunk = connection.recv(65536)
        assert chunk, "the server closed the connection"
        received += chunk
    return received


def read_to_end(connection: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    received = b""
    try:
        while chunk := connection.recv(1 << 20):
            received += chunk
    except ConnectionResetError:
        pass
    finally:
        connection.close()
    return received


def status_of(response: bytes) -> int:
    """The HTTP status of a response; 0 if there is none."""
    return int(response.split(b" ", 2)[1]) if response.startswith(b"HTTP/") else 0


SECRETS = "one" * 6 + "," + "two" * 6


@contextmanager
def served_app(path: Path = HOSTILE, *flags: str, secret: str = SECRETS) -> Iterator[ServedApp]:
    """Serve the app at *path*, and kill the server at the end."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, str(path), "serve", "--port", "0", *flags],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=os.environ | {"ANSWERBACK_SECRET": secret},
        )
        served: ServedApp | None = None
        try:
            served = ServedApp(process, errors)
            yield served
        finally:
            if served is not None:
                served.close()
            process.kill()
            process.wait()
