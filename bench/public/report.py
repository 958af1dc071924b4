"""Prints what was measured, and writes it into the documentation."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..pages import picture
from ..plots import THEMES, draw
from ..report import Chart
from .contenders import NODE, SHOP_WORKLOAD, VALKEY, WORKLOADS, Entry, Workload
from .environments import ROOT
from .load import Measured

PAGE = ROOT / "docs" / "reference" / "public-workloads.md"
FIGURES = ROOT / "docs" / "reference" / "figures"


class Row(msgspec.Struct, frozen=True):
    """What the best round of an entry gave."""

    name: str
    value: float
    """The server's CPU time in milliseconds for 1,000 counted requests."""
    entry: str
    version: str
    counted: float
    """Counted requests a second."""
    raw: float
    """All requests a second."""
    resident: float
    """MB of memory."""
    load: float
    """The share of its core that the load generator used."""
    latencies: dict[str, list[float]]

    @classmethod
    def of(cls, entry: Entry, version: str, measured: Measured) -> Row:
        return cls(
            name=entry.title,
            value=round(1e6 * measured.cpu / max(1, measured.counted), 1),
            entry=entry.name,
            version=version,
            counted=round(measured.counted / measured.seconds, 1),
            raw=round(measured.raw / measured.seconds, 1),
            resident=round(measured.resident, 1),
            load=round(measured.busy, 2),
            latencies={
                name: [round(each, 2) for each in times]
                for name, times in measured.latencies.items()
            },
        )


class Figures(msgspec.Struct, frozen=True):
    """The file of a workload's figures."""

    command: str
    date: str
    machine: str
    rounds: int
    seconds: float
    load: float
    """The load of the machine before the run."""
    versions: dict[str, list[str]]
    rows: list[Row]


def show(workload: Workload, rows: Sequence[Row]) -> None:
    """Print the tables."""
    print(f"\n{workload.title}\n\n{tables(workload, rows)}")


def show_versions(workload: Workload, entries: Sequence[Entry]) -> None:
    for name, packages in versions(workload, entries).items():
        print(f"{name}: {', '.join(packages)}")


def versions(workload: Workload, entries: Sequence[Entry]) -> dict[str, list[str]]:
    """The packages of each environment, as they are pinned."""
    used = {entry.environment.name: entry.environment for entry in entries}
    if any(each.npm for each in used.values()):
        used[NODE.name] = NODE
    if workload.name == SHOP_WORKLOAD.name:
        used[VALKEY.name] = VALKEY
    return {name: [*each.pip, *each.npm] for name, each in used.items()}


def tables(workload: Workload, rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown for each protocol version, and one with the latencies."""
    parts = []
    for version in dict.fromkeys(row.version for row in rows):
        shown = [row for row in rows if row.version == version]
        parts += [_costs(workload, version, shown), _latencies(shown)]
    return "\n".join(parts)


def _costs(workload: Workload, version: str, rows: Sequence[Row]) -> str:
    """The CPU time, what it is beside that of the bases, and the other figures."""
    values = {row.entry: row.value for row in rows}
    bases = {entry: title for entry, title in workload.bases.items() if entry in values}
    first = f"server, {version}" if version else "server"
    times = [f"times {title}" for title in bases.values()]
    head = [first, "CPU ms for 1,000", *times, "counted/s", "raw/s", "memory MB"]
    lines = [
        [
            row.name,
            f"{row.value:,.0f}",
            *(f"{values[entry] / row.value:.1f}" for entry in bases),
            f"{row.counted:,.0f}",
            f"{row.raw:,.0f}",
            f"{row.resident:.0f}",
        ]
        for row in rows
    ]
    return _table(head, lines)


def _latencies(rows: Sequence[Row]) -> str:
    """The median, the 95th and the 99th percentile of each method, in milliseconds."""
    names = list(dict.fromkeys(name for row in rows for name in row.latencies))
    # A user of the second workload opens its session before the time that counts.
    names = [name for name in names if all(name in row.latencies for row in rows)]
    lines = [
        [row.name, *(" / ".join(f"{each:.1f}" for each in row.latencies[name]) for name in names)]
        for row in rows
    ]
    return _table(["p50 / p95 / p99 in ms", *(f"`{name}`" for name in names)], lines)


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = "|---|" + "---:|" * (len(head) - 1)
    rows = [f"| {' | '.join(row)} |" for row in (head, *lines)]
    return "\n".join([rows[0], rule, *rows[1:], ""])


def write(
    workload: Workload,
    entries: Sequence[Entry],
    rows: Sequence[Row],
    *,
    rounds: int,
    seconds: float,
    load: float,
) -> None:
    """Write the figures as JSON, and what is drawn from them."""
    figures = Figures(
        command=f"python -m bench public --workload {workload.name}",
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=_machine(),
        rounds=rounds,
        seconds=seconds,
        load=round(load, 1),
        versions=versions(workload, entries),
        rows=list(rows),
    )
    FIGURES.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(figures), indent=1)
    _file(workload).write_bytes(encoded + b"\n")
    redraw()


def redraw() -> None:
    """Draw the charts, and write the tables to the page."""
    for path, text in drawn().items():
        path.write_text(text)


def drawn() -> dict[Path, str]:
    """Each file that is made from the figures, with its text."""
    page = PAGE.read_text()
    files: dict[Path, str] = {}
    for workload in WORKLOADS:
        if not _file(workload).exists():
            continue
        figures = msgspec.json.decode(_file(workload).read_bytes(), type=Figures)
        chart = _chart(workload, figures)
        for theme in THEMES:
            files[FIGURES / f"{chart.name}-{theme}.svg"] = draw(chart, theme)
        page = _filled(page, workload.name, _section(workload, figures, chart))
    return {PAGE: page, **files}


def _file(workload: Workload) -> Path:
    return FIGURES / f"{workload.name}.json"


def _chart(workload: Workload, figures: Figures) -> Chart:
    found = {(row.name, row.version): row.value for row in figures.rows}
    columns = list(dict.fromkeys(row.version for row in figures.rows))
    names = dict.fromkeys(row.name for row in figures.rows)
    return Chart(
        name=workload.name,
        title=workload.title,
        unit="ms of CPU time for 1,000 requests",
        columns=columns,
        rows={name: [found.get((name, version)) for version in columns] for name in names},
    )


def _section(workload: Workload, figures: Figures, chart: Chart) -> str:
    """The text between the markers."""
    busiest = max(row.load for row in figures.rows)
    origin = (
        f"`{figures.command}`, {figures.date}, the best of {figures.rounds} rounds of "
        f"{figures.seconds:g} s; {figures.machine}; load before it {figures.load:g}. The load "
        f"generator used at most {busiest:.0%} of its core."
    )
    return f"\n{origin}\n\n{picture(chart, PAGE)}\n\n{tables(workload, figures.rows)}\n"


def _machine() -> str:
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} cores ({model}), CPython {platform.python_version()}"


def _filled(page: str, name: str, text: str) -> str:
    """Put *text* between the markers `<!-- figures: NAME -->` and `<!-- end -->`."""
    start, end = f"<!-- figures: {name} -->", "<!-- end -->"
    before, found, rest = page.partition(start)
    if not found or end not in rest:
        raise SystemExit(f"{PAGE} has no place for the figures: expected {start} and {end}")
    return f"{before}{start}\n{text}{end}{rest.partition(end)[2]}"
