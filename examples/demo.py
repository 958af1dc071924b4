"""One call over every wire, side by side. Ends with 1 if two wires do not say the same."""

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
COLUMNS = ["wire", "asked with", "status", "answer", "took"]
app: App = run_path(str(FILE))["app"]


class Asked(NamedTuple):
    """One call: the tool and its arguments."""

    tool: str
    arguments: dict[str, int]

    @property
    def words(self) -> list[str]:
        return [self.tool, *(f"{name}={value}" for name, value in self.arguments.items())]

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(self.arguments)

    @property
    def rpc(self) -> bytes:
        """As MCP asks it, on any wire."""
        params = {"name": self.tool, "arguments": self.arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return msgspec.json.encode(request)


class Answer(NamedTuple):
    """What one wire came to."""

    wire: str
    asked: str
    status: str
    said: str
    took: float


def in_memory(asked: Asked) -> Answer:
    started = time.perf_counter()
    reply = asyncio.run(app.call(asked.tool, **asked.arguments))
    took = time.perf_counter() - started
    # In memory there is no JSON to see; this is what REST, CGI and the shell make of the reply.
    written = write(reply, "rest", app.tools[asked.tool].shape, app.contract)
    status = "ok" if reply.error is None else reply.error.code
    given = ", ".join(f"{name}={value!r}" for name, value in asked.arguments.items())
    line = f'app.call("{asked.tool}", {given})'
    return Answer("memory", line, status, written.body.decode(), took)


def over_rest(asked: Asked, url: str) -> Answer:
    path = f"/functions/{asked.tool}"
    status, body, took = _post(f"{url}{path}", asked.body)
    return Answer("REST", f"POST {path}", str(status), body.decode(), took)


def over_cgi(asked: Asked) -> Answer:
    path, length = f"/{asked.tool}", str(len(asked.body))
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "CONTENT_LENGTH": length}
    done, took = _run(["cgi"], asked.body, environ)
    head, _, said = done.stdout.partition(b"\r\n\r\n")
    status = re.search(rb"^Status: (\d+)", head)
    told = status.group(1).decode() if status else "none"
    return Answer("CGI", f"PATH_INFO={path}", told, said.decode(), took)


def in_a_shell(asked: Asked) -> Answer:
    words = ["call", *asked.words]
    done, took = _run(words, b"", {})
    # An error is told on stderr, in its last line.
    said = (done.stdout or done.stderr).decode().splitlines()[-1]
    return Answer("command line", " ".join(words), f"exit {done.returncode}", said, took)


def over_mcp_stdio(asked: Asked) -> Answer:
    done, took = _run(["mcp"], asked.rpc + b"\n", {})
    return _from_mcp("MCP, stdio", "tools/call on stdin", done.stdout, took)


def over_mcp_http(asked: Asked, url: str) -> Answer:
    accepted = {"Accept": "application/json, text/event-stream"}
    _, body, took = _post(f"{url}/mcp", asked.rpc, accepted)
    return _from_mcp("MCP, HTTP", "POST /mcp, tools/call", body, took)


def _from_mcp(wire: str, asked: str, response: bytes, took: float) -> Answer:
    result = msgspec.json.decode(response)["result"]
    status = "isError" if result["isError"] else "ok"
    return Answer(wire, asked, status, result["content"][0]["text"], took)


def compare(asked: Asked, url: str, columns: Sequence[str]) -> bool:
    """Show what each wire says to one call; whether all say the same."""
    answers = [
        in_memory(asked),
        over_rest(asked, url),
        over_cgi(asked),
        in_a_shell(asked),
        over_mcp_stdio(asked),
        over_mcp_http(asked, url),
    ]
    print(f"{' '.join(asked.words)}\n")
    _show(columns, answers)
    same = len({_meant(answer.said) for answer in answers}) == 1
    print(f"\n{'The same answer on every wire.' if same else 'THE ANSWERS DIFFER.'}\n")
    return same


def _meant(said: str) -> str:
    """What is said, in whichever form: MCP marks an error beside its message."""
    try:
        message = msgspec.json.decode(said, type=dict[str, Any]).get("error")
    except msgspec.DecodeError:
        return said
    return said if message is None else str(message)


@contextmanager
def serving() -> Iterator[str]:
    """The calculator on a free port of this machine, for as long as it is needed."""
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
    """Status, body and how long it took."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            status, said = response.status, response.read()
    except urllib.error.HTTPError as error:
        status, said = error.code, error.read()
    return status, said, time.perf_counter() - started


def _show(columns: Sequence[str], answers: list[Answer]) -> None:
    rows = [_row(columns, answer) for answer in answers]
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    rule = ["─" * width for width in widths]
    for row in (columns, rule, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print(f"  {'  '.join(cells)}".rstrip())


def _row(columns: Sequence[str], answer: Answer) -> list[str]:
    cells = {
        "wire": answer.wire,
        "asked with": answer.asked,
        "status": answer.status,
        "answer": answer.said,
        "took": f"{answer.took * 1000:.0f} ms",
    }
    return [cells[column] for column in columns]


def main() -> int:
    print("One typed function, one checked reply, every wire.\n")
    with serving() as url:
        same = [
            compare(Asked("add", {"x": 7, "y": 3}), url, COLUMNS),
            # As above, and it is to fit a terminal.
            compare(Asked("divide", {"x": 7, "y": 0}), url, [*COLUMNS[:1], *COLUMNS[2:]]),
        ]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
