"""CPU time of a call by the size of its result or argument, compared with the official SDK."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from . import sizes_app
from .mcp_http import stateful
from .mcp_stdio import Client
from .report import Chart, Figure, Found
from .rest import UVICORNS, running
from .sizes_values import repeated

SIZES = {"1 KB": 1_000, "10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
ROUNDS = 3
BYTES_PER_ROUND = 2_000_000
"""How much is returned in a round of calls of one size, but at least one call."""


KINDS = {
    "text": "a text",
    "note": "a record with a text",
    "records": "typed records",
    "length": "a text argument",
}
TAKE_TEXT = ("length",)
"""The tools that take a text of the size; the others return something of the size."""
CUT = "cut_records"
"""The tool that keeps its records and sends a part of them."""
LARGEST_ARGUMENT = 1_000_000
"""The SDK refuses bodies of more than 4 MB over HTTP."""
LARGEST_GROWTH = 1.25
Times: TypeAlias = dict[tuple[str, str, int], tuple[float, float]]
"""By wire, tool and size: our CPU time and the SDK's, in seconds."""


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
            if len(self.call(tool, size)) < (0 if tool in (*TAKE_TEXT, CUT) else size * 0.8):
                raise RuntimeError(f"the result of {tool} is too short")
        return (self.cpu() - start) / calls


def measure() -> Found:
    with ExitStack() as stack:
        servers = {
            "stdio": (
                stack.enter_context(_stdio("sizes")),
                stack.enter_context(_stdio("mcp sizes")),
            ),
            "HTTP": (stack.enter_context(_ours_http()), stack.enter_context(_official_http())),
        }
        found = {
            (wire, tool, size): _least(ours, theirs, tool, size)
            for wire, (ours, theirs) in servers.items()
            for tool in (*KINDS, CUT)
            for size in SIZES.values()
            if _is_measured(tool, size)
        }
        growth = [_growth(wire, ours) for wire, (ours, _) in servers.items()]
    return [
        *(_chart(found, wire) for wire in servers),
        _argument_chart(found),
        *(_worst(found, wire, tool) for wire in servers for tool in (*KINDS, CUT)),
        *growth,
    ]


def _is_measured(tool: str, size: int) -> bool:
    if tool == CUT:
        return size >= SIZES["1 MB"]
    return tool not in TAKE_TEXT or size <= LARGEST_ARGUMENT


def _chart(found: Times, wire: str) -> Chart:
    rows: dict[str, list[float | None]] = {}
    for tool in ("text", "records"):
        for number, name in enumerate(("Answerback", "mcp")):
            row = [found[wire, tool, size][number] * 1e3 for size in SIZES.values()]
            rows[f"{name}, {KINDS[tool]}"] = [*row]
    return Chart(
        name=f"sizes-{wire.lower()}",
        title=f"A call over {wire}, by the size of its result",
        unit="ms of the server's CPU time",
        columns=list(SIZES),
        rows=rows,
        across="result",
    )


def _argument_chart(found: Times) -> Chart:
    sizes = {shown: size for shown, size in SIZES.items() if size <= LARGEST_ARGUMENT}
    rows: dict[str, list[float | None]] = {}
    for wire in ("stdio", "HTTP"):
        for number, name in enumerate(("Answerback", "mcp")):
            row = [found[wire, "length", size][number] * 1e3 for size in sizes.values()]
            rows[f"{name}, {wire}"] = [*row]
    return Chart(
        name="sizes-argument",
        title="A call, by the size of its text argument",
        unit="ms of the server's CPU time",
        columns=list(sizes),
        rows=rows,
        across="argument",
    )


def _worst(found: Times, wire: str, tool: str) -> Figure:
    """The size with the smallest advantage."""
    ratios = {
        shown: theirs / ours
        for shown, size in SIZES.items()
        for ours, theirs in [found.get((wire, tool, size), (0.0, 0.0))]
        if ours
    }
    least = min(ratios, key=ratios.__getitem__)
    ours, theirs = found[wire, tool, SIZES[least]]
    detail = f"least at {least}: {ours * 1e3:.2f} against {theirs * 1e3:.2f} ms of CPU time"
    kind = KINDS.get(tool, "typed records, cut and kept")
    return Figure(f"{wire}, {kind}, any size, times mcp", ratios[least], 1, False, detail)


def _growth(wire: str, ours: SizeServer) -> Figure:
    """The growth from 1 MB to 10 MB of typed records, as a multiple of that of msgspec alone.

    Ten times the values always take more than ten times as long: they leave the caches of the
    processor, and the garbage collector visits them.
    """
    small, large = SIZES["1 MB"], SIZES["10 MB"]
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        for size in (small, large):
            times["ours", size].append(ours.cpu_per_call("records", size))
            times["bare", size].append(_bare_seconds(size))
    least = {key: min(found) for key, found in times.items()}
    growth = least["ours", large] / least["ours", small]
    bare_growth = least["bare", large] / least["bare", small]
    detail = f"{growth:.1f} times the CPU time against {bare_growth:.1f} times"
    what = f"{wire}, {KINDS['records']}, growth from 1 MB to 10 MB, of msgspec's"
    return Figure(what, growth / bare_growth, LARGEST_GROWTH, True, detail)


def _bare_seconds(size: int) -> float:
    """The CPU time of making, encoding and decoding the records of the tool in this process."""
    start = time.process_time()
    msgspec.json.decode(msgspec.json.encode(sizes_app.records(size)), type=list[sizes_app.Record])
    return time.process_time() - start


def _least(ours: SizeServer, theirs: SizeServer, tool: str, size: int) -> tuple[float, float]:
    """Our CPU time and theirs in seconds."""
    found: dict[SizeServer, list[float]] = {ours: [], theirs: []}
    for _ in range(ROUNDS):
        for server, times in found.items():
            # The SDK cannot cut, so it sends all records.
            is_sent = tool == CUT and server is theirs
            times.append(server.cpu_per_call("records" if is_sent else tool, size))
    # The least of all rounds: other load on the machine only adds to a figure.
    return min(found[ours]), min(found[theirs])


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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

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
