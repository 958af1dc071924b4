"""The CPU time, in all threads, that recording a reply in SQLite adds to a served call."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, TypeAlias

from answerback import App
from answerback.records import Records, SQLite
from answerback.records.reader import StoredRecord, Summary, decode, read, summarise
from answerback.registry.declarations import registry_of

from .report import Figure
from .rest import SECONDS, Server, rate, running

ROUNDS = 5
LOOP_CALLS = 100_000
ADD, WEATHER = "/functions/add_async", "/functions/weather"
SITES = {
    "without": "bench.site:site",
    "recorded": "bench.records:recorded",
    "checked": "bench.records:checked",
}
MEASURED = [
    ("without", ADD),
    ("recorded", ADD),
    ("checked", ADD),
    ("without", WEATHER),
    ("checked", WEATHER),
]
LIMIT = 25
Costs: TypeAlias = "list[dict[tuple[str, str], float]]"
# Longer than records wait to be written, so that writing the last of them is measured too.
WRITING_SECONDS = 0.6


def __getattr__(name: str) -> Any:
    """The ASGI application with records; it is made only in the process that serves it."""
    if name not in ("recorded", "checked"):
        raise AttributeError(name)
    from .apps import app

    file = Path(os.environ["BENCH_RECORDS"]) / f"{name}.db"
    registry_of(app).records = Records(SQLite(file), check=name == "checked")
    return app.asgi()


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        os.environ["BENCH_RECORDS"] = folder
        costs = _costs()
        kept = {name: _summary(folder, name) for name in ("recorded", "checked")}
        asyncio.run(_call_in_a_tight_loop(f"{folder}/tight loop.db"))
        kept["tight loop"] = _summary(folder, "tight loop")
    return [
        _figure("a record in SQLite without the rules, µs", costs, "recorded", ADD),
        _figure("a record with the rules, µs", costs, "checked", ADD),
        _figure("a record with the rules, an object, µs", costs, "checked", WEATHER),
        *(_lost(name, summary) for name, summary in kept.items()),
    ]


def _costs() -> Costs:
    with (
        running(SITES["without"]) as without,
        running(SITES["recorded"]) as recorded,
        running(SITES["checked"]) as checked,
    ):
        servers = {"without": without, "recorded": recorded, "checked": checked}
        for name, path in MEASURED:
            _per_call(servers[name], path)
        # Measured in turn, so that other load on the machine affects all of them alike.
        return [
            {(name, path): _per_call(servers[name], path) for name, path in MEASURED}
            for _ in range(ROUNDS)
        ]


def _summary(folder: str, name: str) -> Summary:
    kept = (decode(each) for each in read(f"{folder}/{name}.db") if isinstance(each, StoredRecord))
    return summarise(event for event in kept if event is not None)


async def _call_in_a_tight_loop(file: str) -> None:
    """Calls in process keep the writer thread from running."""
    records = Records(SQLite(file))
    app = App("tight loop", records=records)
    app.add_tool(lambda: 1, name="one", inline=True)
    for _ in range(LOOP_CALLS):
        await app.call("one")
    records.close(60)


def _lost(name: str, summary: Summary) -> Figure:
    """No record may be lost: a lost record costs no CPU time and would improve the figures."""
    total = summary.calls + summary.lost
    detail = f"{summary.lost} of {total}, {summary.unchecked} not checked"
    return Figure(f"records lost, {name}, %", 100 * summary.lost / total, 0, True, detail)


def _figure(what: str, costs: Costs, name: str, path: str) -> Figure:
    """The difference of the smallest costs: other load on the machine can only add to a cost."""
    with_it, without = ([cost[site, path] for cost in costs] for site in (name, "without"))
    middle = statistics.median(a - b for a, b in zip(with_it, without, strict=True))
    base = min(without)
    detail = f"smallest of {ROUNDS}; median {middle:.1f}; a call takes {base:.0f} µs without"
    return Figure(what, min(with_it) - base, LIMIT, True, detail)


def _per_call(server: Server, path: str) -> float:
    """The CPU time of one call in microseconds."""
    before = server.cpu()
    calls = rate(server.port, path) * SECONDS
    time.sleep(WRITING_SECONDS)
    return (server.cpu() - before) / calls * 1e6
