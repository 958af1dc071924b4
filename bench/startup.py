"""The time of one call with the start of Python, as a multiple of `python -c "import msgspec"`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from .report import Figure

ROUNDS = 15
APP = "bench/apps.py"
BODY = b'{"x":7,"y":3}'


def measure() -> list[Figure]:
    commands = {
        "python": ([sys.executable, "-c", "import msgspec"], {}),
        "cgi, def tool": _cgi("add"),
        "cgi, async tool": _cgi("add_async"),
        "call, def tool": _call("add"),
        "call, async tool": _call("add_async"),
    }
    for command, more in commands.values():
        _run(command, more)  # The first run compiles the bytecode.
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, (command, more) in commands.items():
            times[name].append(_run(command, more))
    bare = statistics.median(times.pop("python"))
    return [
        Figure(
            name,
            statistics.median(found) / bare,
            2.5 if "async" in name else 2.0,
            True,
            f"{statistics.median(found) * 1e3:.0f} ms against {bare * 1e3:.0f} ms",
        )
        for name, found in times.items()
    ]


def _cgi(name: str) -> tuple[list[str], dict[str, str]]:
    request = {"REQUEST_METHOD": "POST", "PATH_INFO": f"/{name}", "CONTENT_LENGTH": str(len(BODY))}
    return [sys.executable, APP, "cgi"], request


def _call(name: str) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, APP, "call", name, "x=7", "y=3"], {}


def _run(command: list[str], more: dict[str, str]) -> float:
    environment = {**os.environ, **more, "PYTHONDONTWRITEBYTECODE": ""}
    start = time.perf_counter()
    done = subprocess.run(command, input=BODY, env=environment, capture_output=True, check=True)
    taken = time.perf_counter() - start
    if command[1] == APP and b'{"result":10}' not in done.stdout:
        raise RuntimeError(f"{command} answered {done.stdout!r}")
    return taken
