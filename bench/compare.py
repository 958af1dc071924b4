"""`python -m bench.compare OTHER [ROUNDS [WORD]]`: this checkout against another, in the same run.

OTHER is the folder of another checkout; WORD picks the rows with that word. Both are measured in
turn, through public entrances alone, and the least of all rounds counts: other load on the machine
only adds to a figure.
Rows with a server show the CPU time of its process for each call; start-up rows show the time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from . import mcp_http
from .mcp_stdio import INITIALIZE, cpu_seconds
from .rest import BODY, SECONDS, Server, rate

HERE = Path(__file__).parent.parent
APP = Path(__file__).parent / "apps.py"
CALLS = 8000
RULES = """
import json, time
from answerback import validate
reply = {"content": [{"type": "text", "text": '{"result":10}'}],
         "structuredContent": {"result": 10}, "isError": False}
validate(reply)
start = time.process_time()
for _ in range(5000):
    validate(reply)
print((time.process_time() - start) / 5000)
"""
Measure: TypeAlias = Callable[[], float]


def main(arguments: list[str]) -> int:
    trees = {"here": HERE, "there": Path(arguments[0]).resolve()}
    rounds = int(arguments[1]) if len(arguments) > 1 else 7
    word = arguments[2] if len(arguments) > 2 else ""
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        rows = {row: found for row, found in _rows(trees, folder).items() if word in row}
        least: dict[str, dict[str, float]] = {row: {} for row in rows}
        for number in range(rounds + 1):
            for row, measures in rows.items():
                for name, measure in measures.items():
                    found = measure()
                    if number:  # The first round compiles the bytecode.
                        least[row][name] = min(found, least[row].get(name, found))
    print(f"{'':44}{'here':>10}{'there':>10}{'ratio':>8}")
    for row, times in least.items():
        here, there = times["here"], times["there"]
        print(f"{row:44}{_shown(here):>10}{_shown(there):>10}{here / there:8.2f}")
    return 0


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds > 2e-3 else f"{seconds * 1e6:.1f} µs"


def _rows(trees: dict[str, Path], folder: str) -> dict[str, dict[str, Measure]]:
    measures: dict[str, Callable[[Path], float]] = {
        "start of stdio, to the first response": _stdio_start,
        "start of stdio, to the first call's reply": _stdio_first_call,
        "start of cgi, with a call": partial(_process, ["cgi"]),
        "start of call, with a call": partial(_process, ["call", "add", "x=7", "y=3"]),
        "stdio call, def": partial(_stdio_call, "add"),
        "stdio call, inline": partial(_stdio_call, "add_inline"),
        "stdio call, async": partial(_stdio_call, "add_async"),
        "REST, inline": partial(_served, [], _rest("add_inline")),
        "REST, async": partial(_served, [], _rest("add_async")),
        "REST, def": partial(_served, [], _rest("add")),
        "REST, async, with records": partial(
            _served, ["--audit", f"{folder}/{{}}.db"], _rest("add_async")
        ),
        "MCP 2025-11-25, inline": partial(_served, [], _stateful("add_inline")),
        "MCP 2025-11-25, def": partial(_served, [], _stateful("add")),
        "MCP 2026-07-28, inline": partial(_served, [], _stateless("add_inline")),
        "MCP 2026-07-28, def": partial(_served, [], _stateless("add")),
        "validate": _validate,
    }
    return {
        row: {name: partial(measure, tree) for name, tree in trees.items()}
        for row, measure in measures.items()
    }


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": str(tree / "src")}


Job: TypeAlias = tuple[int, str, str, dict[str, str]]


def _rest(tool: str) -> Callable[[int], Job]:
    return lambda port: (port, f"/functions/{tool}", BODY, {})


def _stateful(tool: str) -> Callable[[int], Job]:
    return lambda port: mcp_http.stateful(port, tool)


def _stateless(tool: str) -> Callable[[int], Job]:
    return lambda port: mcp_http.stateless(port, tool)


@contextmanager
def app_server(tree: Path, options: list[str]) -> Iterator[Server]:
    """`serve` on a free port; its first lines say which."""
    options = [option.format(tree.name) for option in options]
    process = subprocess.Popen(
        [sys.executable, str(APP), "serve", "--port", "0", *options],
        env=_environment(tree),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "/functions/" in line)
        yield Server(int(line.rpartition("127.0.0.1:")[2].partition("/")[0]), process.pid)
    finally:
        process.terminate()
        process.wait(10)


def _served(options: list[str], job: Callable[[int], Job], tree: Path) -> float:
    with app_server(tree, options) as server:
        call = job(server.port)
        rate(*call)  # The first calls build decoders and start threads.
        before = cpu_seconds(server.pid)
        calls = rate(*call) * SECONDS
        return (cpu_seconds(server.pid) - before) / calls


@contextmanager
def _stdio(tree: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, str(APP), "mcp"],
        env=_environment(tree),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        _ask(process, "initialize", INITIALIZE)
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)


def _ask(process: subprocess.Popen[bytes], method: str, params: object) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    if b'"result"' not in process.stdout.readline():
        raise RuntimeError(f"{method} failed")


def _stdio_start(tree: Path) -> float:
    start = time.perf_counter()
    with _stdio(tree):
        return time.perf_counter() - start


def _stdio_first_call(tree: Path) -> float:
    """The call is sent as soon as `initialize` is answered."""
    start = time.perf_counter()
    with _stdio(tree) as process:
        _ask(process, "tools/call", {"name": "add", "arguments": {"x": 7, "y": 3}})
        return time.perf_counter() - start


def _stdio_call(tool: str, tree: Path) -> float:
    params = {"name": tool, "arguments": {"x": 7, "y": 3}}
    with _stdio(tree) as process:
        _ask(process, "tools/call", params)
        before = cpu_seconds(process.pid)
        for _ in range(CALLS):
            _ask(process, "tools/call", params)
        return (cpu_seconds(process.pid) - before) / CALLS


def _process(arguments: list[str], tree: Path) -> float:
    request = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/add",
        "CONTENT_LENGTH": str(len(BODY)),
        "CONTENT_TYPE": "application/json",
    }
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(APP), *arguments],
        env=_environment(tree) | request,
        input=BODY.encode(),
        capture_output=True,
        check=True,
    )
    taken = time.perf_counter() - start
    if b'{"result":10}' not in done.stdout:
        raise RuntimeError(f"{arguments} answered {done.stdout!r}")
    return taken


def _validate(tree: Path) -> float:
    command = [sys.executable, "-c", RULES]
    done = subprocess.run(command, env=_environment(tree), capture_output=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
