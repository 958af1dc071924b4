"""Counts each tool's calls, failures and durations from the records."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import msgspec

from .event import Event

UNKNOWN_TOOLS = "(unknown)"
_TOOL_NOT_FOUND = "TOOL_NOT_FOUND"


class ToolStatistics(msgspec.Struct, frozen=True):
    """The counts for one tool, resource, prompt or completion; times are in milliseconds."""

    tool: str
    calls: int
    failures: int
    findings: int
    """How many replies have findings."""
    p50: float
    p95: float
    p99: float


class Summary(msgspec.Struct, frozen=True):
    tools: list[ToolStatistics]
    calls: int
    failures: int
    lost: int
    """How many records could not be written."""
    unchecked: int
    """How many replies were recorded without running the rules."""


class _Tally:
    def __init__(self) -> None:
        self.durations = array("Q")
        self.failures = 0
        self.findings = 0

    def statistics(self, name: str) -> ToolStatistics:
        ordered = sorted(self.durations)
        p50, p95, p99 = (_percentile(ordered, percent) for percent in (50, 95, 99))
        return ToolStatistics(name, len(ordered), self.failures, self.findings, p50, p95, p99)


def summarise(events: Iterable[Event]) -> Summary:
    """Return the statistics of all events, the tool with the most calls first."""
    tallies: dict[str, _Tally] = {}
    lost = unchecked = 0
    for event in events:
        lost += event.lost
        if not event.is_reply:
            continue
        unchecked += event.unchecked
        tally = tallies.setdefault(_name(event), _Tally())
        tally.durations.append(max(event.duration_us, 0))
        tally.failures += event.failed
        tally.findings += bool(event.findings)
    rows = [tally.statistics(name) for name, tally in tallies.items()]
    rows.sort(key=lambda row: (-row.calls, row.tool))
    calls = sum(row.calls for row in rows)
    failures = sum(row.failures for row in rows)
    return Summary(rows, calls, failures, lost, unchecked)


def _name(event: Event) -> str:
    """Return the name to count under; unknown tools share one, as callers invent their names."""
    if event.code == _TOOL_NOT_FOUND:
        return UNKNOWN_TOOLS
    return event.tool if event.kind == "tool" else f"{event.kind} {event.tool}"


def _percentile(ordered: list[int], percent: int) -> float:
    """Return the smallest duration that *percent* of all durations do not exceed, in ms."""
    index = max(-(-len(ordered) * percent // 100), 1) - 1
    return ordered[index] / 1000
