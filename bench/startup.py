"""The time from the start of Python to the first answer: one call, a stdio and an HTTP server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .mcp_stdio import Client
from .report import Chart, Figure, Found
from .rest import OURS, UVICORNS, running

ROUNDS = 5
APP = "bench/apps.py"
BODY = b'{"x":7,"y":3}'
_SERVED = ("stdio", "first call over stdio", "HTTP")
PYTHON = 'python -c "import msgspec"'


def measure() -> Found:
    starts: dict[str, Callable[[], float]] = {
        PYTHON: partial(_run, [sys.executable, "-c", "import msgspec"], {}),
        "cgi, def tool": partial(_run, *_cgi("add")),
        "cgi, async tool": partial(_run, *_cgi("add_async")),
        "call, def tool": partial(_run, *_call("add")),
        "call, async tool": partial(_run, *_call("add_async")),
        "stdio, ours": partial(_stdio, "ours"),
        "stdio, mcp": partial(_stdio, "mcp"),
        "stdio, FastMCP": partial(_stdio, "fastmcp"),
        "first call over stdio, ours": partial(_first_call, "ours"),
        "first call over stdio, mcp": partial(_first_call, "mcp"),
        "first call over stdio, FastMCP": partial(_first_call, "fastmcp"),
        "HTTP, ours": partial(_http, "bench.site:site", OURS),
        "HTTP, mcp": partial(_http, "bench.peers.official_http:app", UVICORNS),
        "HTTP, FastMCP": partial(_http, "bench.peers.fast_http:app", UVICORNS),
        "HTTP, FastAPI": partial(_http, "bench.peers.fast_api:app", UVICORNS),
        "HTTP, bare": partial(_http, "bench.bare_asgi:app", UVICORNS),
    }
    least = dict.fromkeys(starts, float("inf"))
    for number in range(ROUNDS + 1):
        for name, start in starts.items():
            seconds = start()
            if number:  # The first start compiles the bytecode.
                least[name] = min(least[name], seconds)
    return [*_charts({name: seconds * 1e3 for name, seconds in least.items()}), *_figures(least)]


def _charts(ms: dict[str, float]) -> list[Chart]:
    return [
        Chart(
            name="startup",
            title="From the start of a server to its first answer",
            unit="ms",
            columns=["MCP over stdio", "a first call over stdio", "HTTP, under uvicorn"],
            rows={
                label: [ms.get(f"{wire}, {name}") for wire in _SERVED]
                for label, name in {
                    "Answerback": "ours",
                    "mcp": "mcp",
                    "FastMCP": "FastMCP",
                    "FastAPI": "FastAPI",
                    "bare ASGI": "bare",
                }.items()
            },
        ),
        Chart(
            name="startup-call",
            title="One call, with the start of Python",
            unit="ms",
            columns=[""],
            rows={
                PYTHON: [ms[PYTHON]],
                **{
                    f"Answerback: {name}": [each]
                    for name, each in ms.items()
                    if name.startswith(("cgi", "call"))
                },
            },
        ),
    ]


def _figures(least: dict[str, float]) -> list[Figure]:
    calls = [
        _figure(f"{name}, of {PYTHON}", least[name], least[PYTHON], limit, at_most=True)
        for name, limit in {
            "cgi, def tool": 2.0,
            "cgi, async tool": 2.5,
            "call, def tool": 2.0,
            "call, async tool": 2.5,
        }.items()
    ]
    servers = [
        _figure(
            f"start, {wire}, times {peer}", least[f"{wire}, ours"], least[f"{wire}, {peer}"], limit
        )
        for wire, peer, limit in [
            ("stdio", "mcp", 8.5),
            ("stdio", "FastMCP", 12),
            ("first call over stdio", "mcp", 7),
            ("first call over stdio", "FastMCP", 10),
            ("HTTP", "mcp", 3.5),
            ("HTTP", "FastMCP", 5),
            ("HTTP", "FastAPI", 2),
        ]
    ]
    return calls + servers


def _figure(what: str, ours: float, theirs: float, limit: float, at_most: bool = False) -> Figure:
    ratio = ours / theirs if at_most else theirs / ours
    detail = f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms"
    return Figure(what, ratio, limit, at_most, detail)


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


def _stdio(name: str) -> float:
    client = Client(name)
    client.close()
    return client.started


def _first_call(name: str) -> float:
    """To the reply of a call that is sent as soon as `initialize` is answered."""
    start = time.perf_counter()
    client = Client(name)
    client.call("add")
    taken = time.perf_counter() - start
    client.close()
    return taken


def _http(application: str, protocol: str) -> float:
    """To the answer of any status: the request waits while the application is imported."""
    start = time.perf_counter()
    with running(application, protocol) as server:
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}/", BODY)
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=30).close()
        return time.perf_counter() - start
