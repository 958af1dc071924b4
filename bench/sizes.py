"""CPU time of a call by the size of its result or argument, compared with the official SDK."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from .mcp_http import stateful
from .mcp_stdio import Client
from .report import Figure
from .rest import UVICORNS, running
from .sizes_values import repeated

SIZES = {"1 KB": 1_000, "10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
ROUNDS = 3
BYTES_PER_ROUND = 4_000_000
"""How much is returned in a round of calls of one size, but at least one call."""


KINDS = {
    "text": "a text",
    "note": "a record with a text",
    "records": "typed records",
    "length": "a text argument",
}
TAKE_TEXT = ("length",)
"""The tools that take a text of the size; the others return something of the size."""
LARGEST_ARGUMENT = 1_000_000
"""The SDK refuses bodies of more than 4 MB over HTTP."""
LARGEST_GROWTH = 15
"""Ten times the values take more than ten times as long, because they leave the caches."""


class SizeServer(NamedTuple):
    pid: int
    call: Callable[[str, int], bytes]

    def cpu(self) -> float:
        """The CPU time of all threads of the process so far, in seconds."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def cpu_per_call(self, tool: str, size: int) -> float:
        calls = max(1, min(100, BYTES_PER_ROUND // size))
        start = self.cpu()
        for _ in range(calls):
            # A text holds characters that JSON escapes, so it never gets shorter.
            if len(self.call(tool, size)) < (0 if tool in TAKE_TEXT else size * 0.8):
                raise RuntimeError(f"the result of {tool} is too short")
        return (self.cpu() - start) / calls


def measure() -> list[Figure]:
    with ExitStack() as stack:
        servers = {
            "stdio": (
                stack.enter_context(_stdio("sizes")),
                stack.enter_context(_stdio("mcp sizes")),
            ),
            "HTTP": (stack.enter_context(_ours_http()), stack.enter_context(_official_http())),
        }
        compared = [
            _figure(f"{wire}, {kind} of {shown}, times mcp", ours, theirs, tool, size)
            for wire, (ours, theirs) in servers.items()
            for tool, kind in KINDS.items()
            for shown, size in SIZES.items()
            if tool not in TAKE_TEXT or size <= LARGEST_ARGUMENT
        ]
        return compared + [_growth(wire, ours) for wire, (ours, _) in servers.items()]


def _growth(wire: str, ours: SizeServer) -> Figure:
    """The CPU time of typed records of 10 MB, as a multiple of that of 1 MB."""
    times: dict[str, list[float]] = {"1 MB": [], "10 MB": []}
    for _ in range(ROUNDS):
        for shown, found in times.items():
            found.append(ours.cpu_per_call("records", SIZES[shown]))
    small, large = map(min, times.values())
    detail = f"{large * 1e3:.2f} against {small * 1e3:.2f} ms of CPU time"
    what = f"{wire}, {KINDS['records']} of 10 MB, times 1 MB"
    return Figure(what, large / small, LARGEST_GROWTH, True, detail)


def _figure(what: str, ours: SizeServer, theirs: SizeServer, tool: str, size: int) -> Figure:
    found: dict[SizeServer, list[float]] = {ours: [], theirs: []}
    for _ in range(ROUNDS):
        for server, times in found.items():
            times.append(server.cpu_per_call(tool, size))
    # The least of all rounds: other load on the machine only adds to a figure.
    mine, other = min(found[ours]), min(found[theirs])
    detail = f"{mine * 1e3:.2f} against {other * 1e3:.2f} ms of CPU time"
    return Figure(what, other / mine, 1, False, detail)


def _params(tool: str, size: int) -> dict[str, object]:
    arguments = {"text": repeated(size)} if tool in TAKE_TEXT else {"size": size}
    return {"name": tool, "arguments": arguments}


@contextmanager
def _stdio(name: str) -> Iterator[SizeServer]:
    client = Client(name)

    def call(tool: str, size: int) -> bytes:
        return client.ask("tools/call", _params(tool, size))

    try:
        yield SizeServer(client.process.pid, call)
    finally:
        client.close()


@contextmanager
def _ours_http() -> Iterator[SizeServer]:
    command = [sys.executable, "-m", "answerback", "serve", "bench/sizes_app.py", "--port", "0"]
    command += ["--max-body", "20000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        # The server writes nothing else to stderr after its address.
        lines = iter(process.stderr.readline, "")
        ports = (re.search(r"http://\S+?:(\d+)", line) for line in lines)
        port = next(int(found.group(1)) for found in ports if found)
        yield SizeServer(process.pid, _http_call(port))
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def _official_http() -> Iterator[SizeServer]:
    with running("bench.peers.sizes_official:app", UVICORNS) as server:
        yield SizeServer(server.pid, _http_call(server.port))


def _http_call(port: int) -> Callable[[str, int], bytes]:
    """A function that calls a tool over one connection, in one session."""
    headers: dict[str, str] = {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(tool: str, size: int) -> bytes:
        if not headers:
            headers.update(stateful(port, tool)[3], **{"Content-Type": "application/json"})
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": _params(tool, size),
        }
        try:
            connection.request("POST", "/mcp", json.dumps(message), headers)
            return connection.getresponse().read()
        except (ConnectionError, http.client.HTTPException):
            # The server closed the connection while the other server was measured.
            connection.close()
            connection.request("POST", "/mcp", json.dumps(message), headers)
            return connection.getresponse().read()

    return call
