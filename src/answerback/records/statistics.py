"""What the records come to, tool by tool."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import msgspec

from .event import Event

UNKNOWN = "(unknown)"
_NO_SUCH_TOOL = "TOOL_NOT_FOUND"


class Row(msgspec.Struct, frozen=True):
    """One tool, resource, prompt or completion; times are in milliseconds."""

    tool: str
    calls: int
    failures: int
    findings: int
    p50: float
    p95: float
    p99: float


class Summary(msgspec.Struct, frozen=True):
    tools: list[Row]
    calls: int
    failures: int
    lost: int
    """Records that could not be kept."""
    unchecked: int
    """Replies that the rules had no time for."""


class _Tally:
    def __init__(self) -> None:
        self.durations = array("Q")
        self.failures = 0
        self.findings = 0

    def row(self, name: str) -> Row:
        ordered = sorted(self.durations)
        p50, p95, p99 = (_percentile(ordered, part) for part in (50, 95, 99))
        return Row(name, len(ordered), self.failures, self.findings, p50, p95, p99)


def summarise(events: Iterable[Event]) -> Summary:
    """The busiest first."""
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
    rows = [tally.row(name) for name, tally in tallies.items()]
    rows.sort(key=lambda row: (-row.calls, row.tool))
    calls, failures = (sum(getattr(row, name) for row in rows) for name in ("calls", "failures"))
    return Summary(rows, calls, failures, lost, unchecked)


def _name(event: Event) -> str:
    """Names that callers make up are not worth a row each."""
    if event.code == _NO_SUCH_TOOL:
        return UNKNOWN
    return event.tool if event.kind == "tool" else f"{event.kind} {event.tool}"


def _percentile(ordered: list[int], part: int) -> float:
    """The least that *part* percent do not exceed."""
    place = max(-(-len(ordered) * part // 100), 1) - 1
    return ordered[place] / 1000
