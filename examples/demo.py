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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from runpy import run_path
from typing import NamedTuple

import msgspec

from answerback import App
from answerback.dialects import write

FILE = Path(__file__).with_name("calculator.py")
app: App = run_path(str(FILE))["app"]


class Answer(NamedTuple):
    """What one wire came to."""

    wire: str
    asked: str
    status: str
    body: str
    took: float


def in_memory(x: str, y: str) -> Answer:
    started = time.perf_counter()
    reply = asyncio.run(app.call("add", x=_number(x), y=_number(y)))
    took = time.perf_counter() - started
    # In memory there is no JSON to see; this is what the other wires make of the reply.
    written = write(reply, "rest", app.tools["add"].shape, app.contract)
    status = "ok" if reply.error is None else reply.error.code
    asked = f'app.call("add", x={_number(x)!r}, y={_number(y)!r})'
    return Answer("memory", asked, status, written.body.decode(), took)


def over_rest(url: str, x: str, y: str) -> Answer:
    request = urllib.request.Request(f"{url}/functions/add", _body(x, y))
    request.add_header("Content-Type", "application/json")
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            status, body = response.status, response.read()
    except urllib.error.HTTPError as error:
        status, body = error.code, error.read()
    took = time.perf_counter() - started
    return Answer("REST", "POST /functions/add", str(status), body.decode(), took)


def over_cgi(x: str, y: str) -> Answer:
    body = _body(x, y)
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/add", "CONTENT_LENGTH": str(len(body))}
    done, took = _run(["cgi"], body, environ)
    head, _, said = done.stdout.partition(b"\r\n\r\n")
    status = re.search(rb"^Status: (\d+)", head)
    asked = "REQUEST_METHOD=POST PATH_INFO=/add"
    return Answer("CGI", asked, status.group(1).decode() if status else "none", said.decode(), took)


def in_a_shell(x: str, y: str) -> Answer:
    words = ["call", "add", f"x={x}", f"y={y}"]
    done, took = _run(words, b"", {})
    asked = f"{FILE.name} {' '.join(words)}"
    # An error is told on stderr, in its last line.
    said = (done.stdout or done.stderr).decode().splitlines()[-1]
    return Answer("command line", asked, f"exit {done.returncode}", said, took)


def compare(x: str, y: str, url: str) -> bool:
    """Show what each wire says to one call; whether all say the same."""
    wires: list[Callable[[], Answer]] = [
        lambda: in_memory(x, y),
        lambda: over_rest(url, x, y),
        lambda: over_cgi(x, y),
        lambda: in_a_shell(x, y),
    ]
    answers = [wire() for wire in wires]
    print(f"add x={x} y={y}\n")
    _show([(*answer[:4], f"{answer.took * 1000:.0f} ms") for answer in answers])
    same = len({answer.body for answer in answers}) == 1
    print(f"\n{'The same answer on every wire.' if same else 'THE ANSWERS DIFFER.'}\n")
    return same


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


def _number(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _body(x: str, y: str) -> bytes:
    return msgspec.json.encode({"x": _number(x), "y": _number(y)})


def _show(rows: list[tuple[str, ...]]) -> None:
    heads = ("wire", "asked with", "status", "answer", "took")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    rule = tuple("─" * width for width in widths)
    for row in (heads, rule, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print(f"  {'  '.join(cells)}".rstrip())


def main() -> int:
    print("One typed function, one checked reply, every wire.\n")
    with serving() as url:
        same = [compare("7", "3", url), compare("7", "three", url)]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
