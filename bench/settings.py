"""What the settings that `serve` makes in the interpreter change, beside `ANSWERBACK_TUNE=0`."""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .mcp_stdio import cpu_seconds
from .report import Figure, Found
from .rest import Server, rate

ROUNDS = 4
LARGE = 10_000_000
CALLS = 5_000


def measure() -> Found:
    # What is measured, and how many times the value without the settings it may be.
    cases: dict[str, tuple[Callable[[Server], float], float]] = {
        "typed records of 10 MB, CPU": (_records, 1.0),
        "a def tool over 1,000 connections, CPU": (lambda server: _adding(server, 1_000), 1.2),
        "a def tool over 32 connections, CPU": (lambda server: _adding(server, 32), 1.2),
        "a quick call beside two busy threads, time": (_quick_calls, 0.7),
    }
    found: dict[str, tuple[list[float], list[float]]] = {what: ([], []) for what in cases}
    with _serving("1") as tuned, _serving("0") as plain:
        for _ in range(ROUNDS):
            for what, (case, _) in cases.items():
                for server, times in zip((tuned, plain), found[what], strict=True):
                    times.append(case(server))
    # Other load adds to CPU time, so its least counts; a wait may also be short by chance.
    values = {
        what: [min(each) if what.endswith("CPU") else statistics.median(each) for each in both]
        for what, both in found.items()
    }
    return [
        Figure(
            f"{what}, of that with ANSWERBACK_TUNE=0",
            ours / theirs,
            cases[what][1],
            True,
            f"{ours * 1e3:.3g} against {theirs * 1e3:.3g} ms",
        )
        for what, (ours, theirs) in values.items()
    ]


def _records(server: Server) -> float:
    before = cpu_seconds(server.pid)
    if len(_post(server.port, "records", size=LARGE)) < LARGE / 2:
        raise RuntimeError("the records are too short")
    return cpu_seconds(server.pid) - before


def _adding(server: Server, connections: int) -> float:
    before = cpu_seconds(server.pid)
    rate(server.port, "/functions/add", connections=connections, calls=CALLS)
    return (cpu_seconds(server.pid) - before) / CALLS


def _quick_calls(server: Server) -> float:
    """The median time of quick calls while two threads of the server compute."""
    computing = [
        threading.Thread(target=_post, args=(server.port, "compute"), kwargs={"seconds": 0.5})
        for _ in range(2)
    ]
    for thread in computing:
        thread.start()
    times = []
    while computing[0].is_alive():
        began = time.perf_counter()
        _post(server.port, "quick")
        times.append(time.perf_counter() - began)
    for thread in computing:
        thread.join()
    return statistics.median(times)


def _post(port: int, tool: str, **arguments: Any) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", f"/functions/{tool}", json.dumps(arguments), headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{tool} was answered with {response.status}: {body[:200]!r}")
    return body


@contextmanager
def _serving(tune: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "answerback", "serve", "bench/settings_app.py", "--port", "0"]
    environment = {**os.environ, "ANSWERBACK_TUNE": tune}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        ports = (re.search(r"http://\S+?:(\d+)", line) for line in lines)
        yield Server(next(int(found[1]) for found in ports if found), process.pid)
    finally:
        process.terminate()
        process.wait(10)
