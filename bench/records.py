"""What it costs a served call that its reply is recorded in SQLite: processor time, all threads."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from answerback.records import Records, SQLite
from answerback.records.reading import Kept, decode, read
from answerback.records.statistics import Summary, summarise

from .report import Figure
from .rest import SECONDS, Server, rate, running

ROUNDS = 5
PATH = "/functions/add_async"
SITES = {
    "without": "bench.site:site",
    "recorded": "bench.records:recorded",
    "checked": "bench.records:checked",
}
# Longer than records wait to be written, so that the last of them are counted too.
SETTLED = 0.6


def __getattr__(name: str) -> Any:
    """The measured tools with records; made only in the process that serves them."""
    if name not in ("recorded", "checked"):
        raise AttributeError(name)
    from .apps import app

    file = Path(os.environ["BENCH_RECORDS"]) / f"{name}.db"
    app.records = Records(SQLite(file), check=name == "checked")
    return app.asgi()


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="answerback-bench-") as folder:
        os.environ["BENCH_RECORDS"] = folder
        costs = _costs()
        kept = {name: _summary(folder, name) for name in ("recorded", "checked")}
    # What else the machine does can only add to a figure, so the least is the nearest.
    least = {name: min(cost[name] for cost in costs) for name in SITES}
    return [
        _figure("recording a call in SQLite, µs", least, "recorded", 25),
        # The rules are allowed 30 µs of their own.
        _figure("the same, each reply checked by the rules, µs", least, "checked", 55),
        *(_lost(name, summary) for name, summary in kept.items()),
    ]


def _costs() -> list[dict[str, float]]:
    with (
        running(SITES["without"]) as without,
        running(SITES["recorded"]) as recorded,
        running(SITES["checked"]) as checked,
    ):
        servers = {"without": without, "recorded": recorded, "checked": checked}
        for server in servers.values():
            _per_call(server)
        # Taken in turn, so that what else the machine does falls on all of them alike.
        return [
            {name: _per_call(server) for name, server in servers.items()} for _ in range(ROUNDS)
        ]


def _summary(folder: str, name: str) -> Summary:
    kept = (decode(each) for each in read(f"{folder}/{name}.db") if isinstance(each, Kept))
    return summarise(event for event in kept if event is not None)


def _lost(name: str, summary: Summary) -> Figure:
    """A record that is lost costs nothing, so the figures above hold only if few are."""
    total = summary.calls + summary.lost
    detail = f"{summary.lost} of {total} under full load, {summary.unchecked} not checked"
    return Figure(f"records lost, {name}, %", 100 * summary.lost / total, 0, True, detail)


def _figure(what: str, least: dict[str, float], name: str, limit: float) -> Figure:
    base = least["without"]
    return Figure(what, least[name] - base, limit, True, f"a call takes {base:.0f} µs without")


def _per_call(server: Server) -> float:
    """Microseconds of processor time for one call."""
    before = server.cpu()
    calls = rate(server.port, PATH) * SECONDS
    time.sleep(SETTLED)
    return (server.cpu() - before) / calls * 1e6
