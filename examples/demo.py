"""Makes the same calls over every wire and compares the replies. Exits with 1 if they differ."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from runpy import run_path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from answerback import App
from answerback.dialects import write

FILE = Path(__file__).with_name("calculator.py")
COLUMNS = ["wire", "request", "status", "reply", "time"]
app: App = run_path(str(FILE))["app"]


class ToolCall(NamedTuple):
    tool: str
    arguments: dict[str, int]

    @property
    def words(self) -> list[str]:
        """The call on a command line."""
        return [self.tool, *(f"{name}={value}" for name, value in self.arguments.items())]

    @property
    def body(self) -> bytes:
        """The body of a REST or CGI request."""
        return msgspec.json.encode(self.arguments)

    @property
    def json_rpc(self) -> bytes:
        """The MCP request."""
        params = {"name": self.tool, "arguments": self.arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return msgspec.json.encode(request)


class WireReply(NamedTuple):
    """The reply to a call on one wire."""

    wire: str
    request: str
    status: str
    text: str
    seconds: float


def in_memory(call: ToolCall) -> WireReply:
    started = time.perf_counter()
    reply = asyncio.run(app.call(call.tool, **call.arguments))
    seconds = time.perf_counter() - started
    # In memory there is no JSON; this is the JSON of the same reply over REST, CGI and `call`.
    written = write(reply, "rest", app.tools[call.tool].shape, app.contract)
    status = "ok" if reply.error is None else reply.error.code
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    request = f'app.call("{call.tool}", {arguments})'
    return WireReply("memory", request, status, written.body.decode(), seconds)


def over_rest(call: ToolCall, url: str) -> WireReply:
    path = f"/functions/{call.tool}"
    status, body, seconds = _post(f"{url}{path}", call.body)
    return WireReply("REST", f"POST {path}", str(status), body.decode(), seconds)


def over_cgi(call: ToolCall) -> WireReply:
    path, length = f"/{call.tool}", str(len(call.body))
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "CONTENT_LENGTH": length}
    done, seconds = _run(["cgi"], call.body, environ)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    found = re.search(rb"^Status: (\d+)", head)
    status = found.group(1).decode() if found else "none"
    return WireReply("CGI", f"PATH_INFO={path}", status, body.decode(), seconds)


def on_command_line(call: ToolCall) -> WireReply:
    words = ["call", *call.words]
    # Without a dialect, the JSON of an error also has its code.
    done, seconds = _run([*words, "--dialect", "rest"], b"", {})
    # An error is in the last line of stderr.
    text = (done.stdout or done.stderr).decode().splitlines()[-1]
    return WireReply("command line", " ".join(words), f"exit {done.returncode}", text, seconds)


def over_mcp_stdio(call: ToolCall) -> WireReply:
    done, seconds = _run(["mcp"], call.json_rpc + b"\n", {})
    return _from_mcp("MCP, stdio", "tools/call on stdin", done.stdout, seconds)


def over_mcp_http(call: ToolCall, url: str) -> WireReply:
    headers = {"Accept": "application/json, text/event-stream"}
    _, body, seconds = _post(f"{url}/mcp", call.json_rpc, headers)
    return _from_mcp("MCP, HTTP", "POST /mcp, tools/call", body, seconds)


def _from_mcp(wire: str, request: str, response: bytes, seconds: float) -> WireReply:
    result = msgspec.json.decode(response)["result"]
    status = "isError" if result["isError"] else "ok"
    # MCP sends the hint in the text; the other wires send it beside their JSON.
    text = result["content"][0]["text"].partition("\nHint: ")[0]
    return WireReply(wire, request, status, text, seconds)


def compare(call: ToolCall, url: str, columns: Sequence[str]) -> bool:
    """Print the reply of each wire, and return whether all are the same."""
    replies = [
        in_memory(call),
        over_rest(call, url),
        over_cgi(call),
        on_command_line(call),
        over_mcp_stdio(call),
        over_mcp_http(call, url),
    ]
    print(f"{' '.join(call.words)}\n")
    _print_table(columns, replies)
    same = len({_message(reply.text) for reply in replies}) == 1
    print(f"\n{'The same reply on every wire.' if same else 'THE REPLIES DIFFER.'}\n")
    return same


def _message(text: str) -> str:
    """The message of an error, else the text: only MCP sends the bare message as its text."""
    try:
        message = msgspec.json.decode(text, type=dict[str, Any]).get("error")
    except msgspec.DecodeError:
        return text
    return text if message is None else str(message)


@contextmanager
def serving() -> Iterator[str]:
    """Serve the calculator on a free port, and give its URL."""
    command = [sys.executable, str(FILE), "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield next(found.group() for line in server.stderr if (found := _URL.search(line)))
        finally:
            server.terminate()


_URL = re.compile(r"http://[\d.]+:\d+")


def _run(
    words: list[str], body: bytes, environ: dict[str, str]
) -> tuple[subprocess.CompletedProcess[bytes], float]:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(FILE), *words],
        input=body,
        capture_output=True,
        env=os.environ | environ,
        timeout=10,
        check=False,
    )
    return done, time.perf_counter() - started


def _post(
    url: str, body: bytes, headers: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, bytes, float]:
    """The status, the body and the seconds that the request took."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            status, text = response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read()
    return status, text, time.perf_counter() - started


def _print_table(columns: Sequence[str], replies: list[WireReply]) -> None:
    rows = [_row(columns, reply) for reply in replies]
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    rule = ["─" * width for width in widths]
    for row in (columns, rule, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print(f"  {'  '.join(cells)}".rstrip())


def _row(columns: Sequence[str], reply: WireReply) -> list[str]:
    cells = {
        "wire": reply.wire,
        "request": reply.request,
        "status": reply.status,
        "reply": reply.text,
        "time": f"{reply.seconds * 1000:.0f} ms",
    }
    return [cells[column] for column in columns]


def main() -> int:
    print("One typed function, one checked reply, every wire.\n")
    with serving() as url:
        same = [
            compare(ToolCall("add", {"x": 7, "y": 3}), url, COLUMNS),
            # Without the requests, so that the table fits a terminal.
            compare(ToolCall("divide", {"x": 7, "y": 0}), url, [*COLUMNS[:1], *COLUMNS[2:]]),
        ]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
