"""A client that posts whatever it likes to a served app, and checks all it gets."""

from __future__ import annotations

import http.client
import json
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
from tests.fuzz.pipes import BOUND, HOSTILE, Json, call, checked, request

JSON = "application/json"
EVENTS = "text/event-stream"
BOTH = f"{JSON}, {EVENTS}"


@dataclass
class Said:
    status: int
    headers: Mapping[str, str]
    frames: list[Json] = field(default_factory=list)

    @property
    def frame(self) -> Json:
        """The last frame; there is one."""
        assert self.frames, f"no frame, status {self.status}"
        return self.frames[-1]

    @property
    def code(self) -> int:
        code: int = self.frame["error"]["code"]
        return code


class Site:
    """A served app as one who is outside sees it."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Any) -> None:
        self.process = process
        self._errors = errors
        self._opened: list[socket.socket] = []
        self._line = http.client.HTTPConnection("127.0.0.1", self._find_port(), timeout=BOUND)

    @property
    def port(self) -> int:
        assert self._line.port is not None
        return self._line.port

    def _find_port(self) -> int:
        from tests.fuzz.pipes import wait_until

        wait_until(lambda: "Ctrl-C" in self.stderr() or self.process.poll() is not None)
        found = re.search(r"http://\S+?:(\d+)", self.stderr())
        assert found is not None, self.stderr()[-2000:]
        return int(found.group(1))

    def stderr(self) -> str:
        self._errors.seek(0)
        written: bytes = self._errors.read()
        return written.decode()

    def complaints(self) -> str:
        """What the server said after it said where it is."""
        return self.stderr().partition("Ctrl-C ends it.")[2].strip()

    def send(
        self,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "POST",
        path: str = "/mcp",
        listens: bool = False,
    ) -> Said:
        """One request; *listens* reads only the first event of a stream, and hangs up."""
        given = {"Content-Type": JSON, "Accept": BOTH, **(headers or {})}
        given = {name: value for name, value in given.items() if value != ""}
        for last in (False, True):
            try:
                self._line.request(method, path, body, given)
                return self._read(self._line.getresponse(), listens=listens)
            except (ConnectionError, http.client.HTTPException):
                # The server closes a line that was quiet for some seconds.
                self._line.close()
                if last:
                    raise
        raise AssertionError

    def _read(self, answer: http.client.HTTPResponse, *, listens: bool) -> Said:
        said = Said(answer.status, {name.lower(): value for name, value in answer.getheaders()})
        kind = said.headers.get("content-type", "")
        if kind == EVENTS:
            for event in events(answer):
                said.frames.append(checked(event))
                if listens:
                    self._line.close()
                    break
            return said
        body = answer.read()
        if body:
            assert kind == JSON, f"{answer.status} {kind}"
            said.frames.append(checked(body))
        return said

    def post(self, message: Json, headers: Mapping[str, str] | None = None) -> Said:
        return self.send(json.dumps(message).encode(), headers)

    def stateless(self, message: Json, headers: Mapping[str, str] | None = None) -> Said:
        return self.post(message, {**routing(message), **(headers or {})})

    def initialize(self, version: str = "2025-11-25", **capabilities: Json) -> dict[str, str]:
        """The headers of a new session."""
        client = {"name": "attacker", "version": "1"}
        opening = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
        said = self.post(request(0, "initialize", opening))
        assert said.status == 200
        return {"Mcp-Session-Id": said.headers["mcp-session-id"], "Mcp-Protocol-Version": version}

    def still_serves(self) -> None:
        for frame, headers in (
            (call("fine", "add", x=20, y=22), self.initialize()),
            (call("fine", "add_in_thread", x=20, y=22), {}),
        ):
            said = self.post(frame, headers)
            assert said.status == 200
            assert said.frame["id"] == "fine"
            assert said.frame["result"]["isError"] is False
        said = self.stateless(stateless_call("fine", "add_async", x=20, y=22))
        assert said.status == 200
        assert said.frame["result"]["structuredContent"] == {"result": 42}

    def open(self) -> socket.socket:
        """A bare line to the server."""
        line = socket.create_connection(("127.0.0.1", self.port), timeout=BOUND)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opened.append(line)
        return line

    def post_and_leave(self, message: Json, headers: Mapping[str, str]) -> socket.socket:
        """Send a request, and give the line to whoever reads its answer, or does not."""
        line = self.open()
        line.sendall(raw_post(json.dumps(message).encode(), headers))
        return line

    def status(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def close(self) -> None:
        self._line.close()
        for line in self._opened:
            line.close()


def events(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """The data of each event that has any."""
    while line := answer.readline():
        if line.startswith(b"data:") and line[5:].strip():
            yield line[5:].strip()


def raw_post(body: bytes, headers: Mapping[str, str], path: str = "/mcp") -> bytes:
    given = {
        "Host": "127.0.0.1",
        "Content-Type": JSON,
        "Accept": BOTH,
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def stateless_call(id: Json, name: str, /, **arguments: Json) -> Json:
    frame = call(id, name, **arguments)
    frame["params"]["_meta"] = meta(STATELESS)
    del frame["params"]["_meta"]["progressToken"]
    return frame


def stateless_request(id: Json, method: str, **params: Json) -> Json:
    return request(id, method, {**params, "_meta": meta(STATELESS)})


def routing(message: Json) -> dict[str, str]:
    """The headers that say again what the message says, as far as it says anything."""
    params = message.get("params") if isinstance(message, dict) else None
    params = params if isinstance(params, dict) else {}
    said = params.get("_meta")
    version = said.get(PREFIX + "protocolVersion") if isinstance(said, dict) else None
    named = params.get("uri" if message.get("method") == "resources/read" else "name")
    wanted = {
        "Mcp-Protocol-Version": version,
        "Mcp-Method": message.get("method"),
        "Mcp-Name": named,
    }
    return {name: header_value(value) for name, value in wanted.items() if isinstance(value, str)}


def header_value(text: str) -> str:
    plain = text.isascii() and text.isprintable() and text == text.strip() and len(text) < 1000
    encoded = b64encode(text.encode("utf-8", "replace")[:4000]).decode()
    return text if plain and text else f"=?base64?{encoded}?="


@contextmanager
def site(path: Path = HOSTILE, *flags: str, secret: str = "one,two") -> Iterator[Site]:
    import os

    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, str(path), "serve", "--port", "0", *flags],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=os.environ | {"ANSWERBACK_SECRET": secret},
        )
        served: Site | None = None
        try:
            served = Site(process, errors)
            yield served
        finally:
            if served is not None:
                served.close()
            process.kill()
            process.wait()
