"""Start time, memory and CPU time of a call by the number of tools, over stdio."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .mcp_stdio import Client
from .report import Chart, Figure, Found

COUNTS = [1, 10, 100, 1_000]
ROUNDS, CALLS = 2, 100
KINDS = {"ours": "Answerback", "mcp": "mcp", "fastmcp": "FastMCP"}


def measure() -> Found:
    start, memory, call = (defaultdict[str, list[float | None]](list) for _ in range(3))
    for count in COUNTS:
        for kind, label in KINDS.items():
            rounds = [_round(kind, count) for _ in range(ROUNDS)]
            for found, values in zip((start, memory, call), zip(*rounds, strict=True), strict=True):
                found[label].append(min(values))
    columns = [f"{count:,}" for count in COUNTS]

    def chart(name: str, title: str, unit: str, rows: dict[str, list[float | None]]) -> Chart:
        return Chart(
            name=name, title=title, unit=unit, columns=columns, rows=dict(rows), across="tools"
        )

    first, *_, last = (each or 0.0 for each in call["Answerback"])
    return [
        chart("tools-start", "From the start over stdio to the list of tools", "ms", start),
        chart("tools-memory", "Memory after the list, by tools", "MB resident", memory),
        chart("tools-call", "A call over stdio, by tools", "µs of the server's CPU time", call),
        Figure(
            f"a call with {COUNTS[-1]:,} tools, of one with one tool",
            last / first,
            1.5,
            True,
            f"{last:.0f} against {first:.0f} µs of CPU time",
        ),
    ]


def _round(kind: str, count: int) -> tuple[float, float, float]:
    """The time to the list in ms, the memory in MB, and the CPU time of a call in µs."""
    started = time.perf_counter()
    client = Client(["-m", "bench.many_tools_app", kind, str(count), *(["mcp"] * (kind == "ours"))])
    listed = _list_all(client.ask)
    seconds = time.perf_counter() - started
    if listed != count:
        raise RuntimeError(f"{kind} lists {listed} tools of {count}")
    memory = client.resident()
    client.call("add")  # The first call builds decoders and starts threads.
    before = client.cpu()
    for _ in range(CALLS):
        client.call("add")
    cost = (client.cpu() - before) / CALLS
    client.close()
    return seconds * 1e3, memory / 1024, cost * 1e6


def _list_all(ask: Callable[[str, dict[str, Any]], bytes]) -> int:
    count = 0
    params: dict[str, Any] = {}
    while True:
        result = json.loads(ask("tools/list", params))["result"]
        count += len(result["tools"])
        if "nextCursor" not in result:
            return count
        params = {"cursor": result["nextCursor"]}
