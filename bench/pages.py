"""Writes what was measured to `docs/reference/figures/`, and as tables and pictures to the pages.

A page has `<!-- figures: PART … -->` where the tables of these parts belong, up to `<!-- end -->`.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from .plots import THEMES, draw, in_words
from .report import Chart, Figure, Found, shown

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "reference" / "figures"
BLOCK = re.compile(r"(<!-- figures: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
# The word by which a row or a figure names a package, and the package.
PACKAGES = {
    "msgspec": "msgspec",
    "mcp": "mcp",
    "FastMCP": "fastmcp",
    "FastAPI": "fastapi",
    "uvicorn": "uvicorn",
    "pydantic": "pydantic",
    "httpx": "httpx",
    "httpx2": "httpx2",
    "httpcore": "httpcore",
    "aiohttp": "aiohttp",
    "redis-py": "redis",
    "hiredis": "hiredis",
    "sniffio": "sniffio",
    "typing_extensions": "typing_extensions",
    "jsonschema": "jsonschema",
    "stamina": "stamina",
    "purgatory": "purgatory",
    "limits": "limits",
}
FIRST_PAGE = "first-page"
# The label, the part (its chart has the same name), the column, and the rows of Answerback,
# FastMCP, the SDK and FastAPI.
FIRST_ROWS: list[tuple[str, str, int, list[str]]] = [
    (
        "start of a server on stdio, to its first answer, ms",
        "startup",
        0,
        ["Answerback", "FastMCP", "mcp", ""],
    ),
    (
        "start of a server on HTTP, to its first answer, ms",
        "startup",
        2,
        ["Answerback", "FastMCP", "mcp", "FastAPI"],
    ),
    (
        "a call of a `def` tool over stdio, µs of CPU time",
        "stdio",
        0,
        ["Answerback, def tool", "FastMCP", "mcp", ""],
    ),
    (
        "the same over HTTP, MCP 2026-07-28",
        "http",
        1,
        ["Answerback, def tool", "FastMCP", "mcp", ""],
    ),
    (
        "the same over REST",
        "rest",
        0,
        ["Answerback, def tool", "", "", "FastAPI, def"],
    ),
    (
        "a call over HTTP in the client, µs of CPU time",
        "client",
        1,
        ["Answerback", "FastMCP", "mcp", ""],
    ),
    (
        "memory of a server on HTTP, MB",
        "memory",
        1,
        ["Answerback", "FastMCP", "mcp", "FastAPI (REST)"],
    ),
]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one part, with their date, machine and versions."""

    part: str
    date: str
    seconds: float
    machine: str
    load: float
    python: str
    versions: dict[str, str]
    figures: list[Figure]
    charts: list[Chart]


def keep(part: str, found: Found, seconds: float, load: float) -> None:
    """Write what a part found as JSON."""
    measured = Measured(
        part=part,
        date=time.strftime("%Y-%m-%d"),
        seconds=round(seconds),
        machine=_machine(),
        load=round(load, 1),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions=_versions(),
        figures=[each for each in found if isinstance(each, Figure)],
        charts=[each for each in found if isinstance(each, Chart)],
    )
    FIGURES.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(measured), indent=1)
    Path(FIGURES, f"{part}.json").write_bytes(text + b"\n")


def has_figures(part: str) -> bool:
    """False for what is not measured yet, and for the files of `python -m bench public`."""
    path = Path(FIGURES, f"{part}.json")
    return path.exists() and b'"part"' in path.read_bytes()


def read(part: str) -> Measured:
    return msgspec.json.decode(Path(FIGURES, f"{part}.json").read_bytes(), type=Measured)


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def parts_shown() -> list[str]:
    """The parts that a page shows, each once, in their order on the pages."""
    blocks = [block[2] for page in pages() for block in BLOCK.finditer(page.read_text())]
    return list(dict.fromkeys(part for block in blocks for part in block.split()))


def redraw() -> None:
    """Draw the charts, and write the tables to the pages."""
    for path, text in drawn().items():
        path.write_text(text)


def drawn() -> dict[Path, str]:
    """Each file that is made from what was measured, with its text."""
    files = {page: filled(page.read_text(), page) for page in pages()}
    for part in filter(has_figures, parts_shown()):
        for chart in read(part).charts:
            for theme in THEMES:
                files[Path(FIGURES, f"{chart.name}-{theme}.svg")] = draw(chart, theme)
    return files


def filled(text: str, page: Path) -> str:
    """The text of *page* with the tables of the parts that it names."""

    def block(found: re.Match[str]) -> str:
        is_first = found[2] == FIRST_PAGE
        names = [row[1] for row in FIRST_ROWS] if is_first else found[2].split()
        if not all(map(has_figures, names)):
            return found[0]
        inner = _first_page() if is_first else _rendered([read(name) for name in names], page)
        return f"{found[1]}\n{inner}\n\n{found[3]}"

    return BLOCK.sub(block, text)


def _first_page() -> str:
    """The table beside the comparison with others: a few values of several parts."""
    titles = ["Answerback", "FastMCP", "official SDK", "FastAPI"]
    lines = [f"| measured | {' | '.join(titles)} | command, date |", "|---|" + "---:|" * 4 + "---|"]
    for what, part, column, rows in FIRST_ROWS:
        measured = read(part)
        chart = next(each for each in measured.charts if each.name == part)
        values = [chart.rows[row][column] if row else None for row in rows]
        where = f"`python -m bench {part}`, {measured.date}"
        lines.append(f"| {what} | {' | '.join(map(shown, values))} | {where} |")
    last = read(FIRST_ROWS[-1][1])
    packages = [f"{name} {last.versions[name]}" for name in ("fastmcp", "mcp", "fastapi")]
    where = ", ".join([last.machine, last.python, *packages])
    return "\n".join([*lines, "", f"Less is better in each row. {where}."])


def _rendered(parts: list[Measured], page: Path) -> str:
    charts = [chart for part in parts for chart in part.charts]
    figures = [figure for part in parts for figure in part.figures]
    blocks = [_origin(parts)]
    for chart in charts:
        blocks += [picture(chart, page), "\n".join(_chart_table(chart))]
    if figures:
        blocks.append("\n".join(_figure_table(figures)))
    return "\n\n".join(blocks)


def _origin(parts: list[Measured]) -> str:
    """When, where and with which command the parts were measured."""
    dates = sorted({part.date for part in parts})
    command = " ".join(["python -m bench", *(part.part for part in parts)])
    used = [_package(label, parts) for label in PACKAGES if _is_named(label, parts)]
    last = parts[-1]
    where = ", ".join([last.machine, last.python, *used])
    load = max(part.load for part in parts)
    return (
        f"`{command}`, {' and '.join(dates)}, {sum(part.seconds for part in parts):g} s;"
        f" {where}; load before it {load:g}."
    )


def _package(label: str, parts: list[Measured]) -> str:
    return f"{PACKAGES[label]} {parts[-1].versions.get(PACKAGES[label], '')}".strip()


def _is_named(label: str, parts: list[Measured]) -> bool:
    named = [name for part in parts for chart in part.charts for name in chart.rows]
    named += [figure.what for part in parts for figure in part.figures]
    return any(re.search(rf"(?<![\w-]){re.escape(label)}(?![\w-])", name) for name in named)


def picture(chart: Chart, page: Path) -> str:
    """The picture of a chart, for light and dark pages."""
    folder = os.path.relpath(FIGURES, page.parent)
    alternative = in_words(chart).replace('"', "")
    return "\n".join(
        [
            "<picture>",
            '  <source media="(prefers-color-scheme: dark)"'
            f' srcset="{folder}/{chart.name}-dark.svg">',
            f'  <img alt="{chart.title}, {alternative}" src="{folder}/{chart.name}-light.svg">',
            "</picture>",
        ]
    )


def _chart_table(chart: Chart) -> Iterator[str]:
    first = chart.unit + (f", by {chart.across}" if chart.across else "")
    # A single column needs no name beside the unit.
    columns = [first, *chart.columns] if len(chart.columns) > 1 else ["", first]
    yield f"| {' | '.join(columns)} |"
    yield "|---|" + "---:|" * len(chart.columns)
    for name, values in chart.rows.items():
        yield f"| {name} | {' | '.join(map(shown, values))} |"


def _figure_table(figures: list[Figure]) -> Iterator[str]:
    yield "| figure | found | wanted | measured |"
    yield "|---|---:|---|---|"
    for each in figures:
        mark = "" if each.holds else ", missed"
        ratio = shown(each.ratio) if each.ratio < 0.1 else f"{each.ratio:,.2f}"
        yield f"| {each.what} | {ratio} | {each.wanted}{mark} | {each.detail} |"


def _machine() -> str:
    cpus = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.+)", cpus.read_text()) if cpus.exists() else None
    kind = model[1].strip() if model else platform.machine()
    return f"{os.cpu_count()} cores ({kind}), {platform.system()}"


def _versions() -> dict[str, str]:
    found = {}
    for package in sorted(set(PACKAGES.values())):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
