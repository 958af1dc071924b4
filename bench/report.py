"""What the parts return, figures and charts, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

OURS = "Answerback"
"""Rows of a chart that begin with this word are ours, and are drawn in another colour."""


class Figure(msgspec.Struct, frozen=True):
    what: str
    ratio: float
    limit: float
    at_most: bool
    detail: str

    @property
    def holds(self) -> bool:
        return self.ratio <= self.limit if self.at_most else self.ratio >= self.limit

    @property
    def wanted(self) -> str:
        return f"{'at most' if self.at_most else 'at least'} {self.limit:,g}"


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one unit: a row for each contender, a column for each case. Less is better.

    A chart with *across*, which names what the columns count, is drawn as lines, others as bars.
    """

    name: str
    title: str
    unit: str
    columns: list[str]
    rows: dict[str, list[float | None]]
    across: str = ""


Found: TypeAlias = Sequence[Figure | Chart]


def worst(what: str, figures: Sequence[Figure]) -> Figure:
    """The largest of figures with one limit, which are all to be small."""
    largest = max(figures, key=lambda figure: figure.ratio)
    detail = f"{largest.what}; {largest.detail}"
    return msgspec.structs.replace(largest, what=what, detail=detail)


def shown(value: float | None) -> str:
    """A value with two or three digits that count."""
    if value is None:
        return "–"
    if value < 0.0005:
        return "0"
    decimals = 3 if value < 0.1 else 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:,.{decimals}f}"


def show(found: Found) -> int:
    """Print the charts and figures as tables, and return how many figures miss their limits."""
    figures = [each for each in found if isinstance(each, Figure)]
    for chart in found:
        if isinstance(chart, Chart):
            _show_chart(chart)
    width = max((len(figure.what) for figure in figures), default=0)
    for figure in figures:
        mark = "ok  " if figure.holds else "FAIL"
        print(
            f"{mark} {figure.what:{width}}  {figure.ratio:6.2f}"
            f"  (wanted {figure.wanted})  {figure.detail}"
        )
    return sum(not figure.holds for figure in figures)


def _show_chart(chart: Chart) -> None:
    print(f"{chart.title}, {chart.unit}")
    width = max(map(len, chart.rows))
    print(f"     {'':{width}}" + "".join(f"  {column:>12}" for column in chart.columns))
    for name, values in chart.rows.items():
        print(f"     {name:{width}}" + "".join(f"  {shown(each):>12}" for each in values))
