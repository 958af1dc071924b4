"""What it costs a served call that its reply is recorded in SQLite: processor time, all threads."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from answerback.records import Records, SQLite

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

    file = Path(tempfile.mkdtemp(prefix="answerback-bench-")) / "audit.db"
    app.records = Records(SQLite(file), check=name == "checked")
    return app.asgi()


def measure() -> list[Figure]:
    with (
        running(SITES["without"]) as without,
        running(SITES["recorded"]) as recorded,
        running(SITES["checked"]) as checked,
    ):
        servers = {"without": without, "recorded": recorded, "checked": checked}
        for server in servers.values():
            _per_call(server)
        # Taken in turn, so that what else the machine does falls on all of them alike.
        costs = [
            {name: _per_call(server) for name, server in servers.items()} for _ in range(ROUNDS)
        ]
    base = statistics.median(cost["without"] for cost in costs)
    return [
        _figure("recording a call in SQLite, µs", costs, "recorded", 25, base),
        # The rules are allowed 30 µs of their own.
        _figure("the same, each reply checked by the rules, µs", costs, "checked", 55, base),
    ]


def _figure(
    what: str, costs: list[dict[str, float]], name: str, limit: float, base: float
) -> Figure:
    more = statistics.median(cost[name] - cost["without"] for cost in costs)
    return Figure(what, more, limit, True, f"a call takes {base:.0f} µs without")


def _per_call(server: Server) -> float:
    """Microseconds of processor time for one call."""
    before = server.cpu()
    calls = rate(server.port, PATH) * SECONDS
    time.sleep(SETTLED)
    return (server.cpu() - before) / calls * 1e6
