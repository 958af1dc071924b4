"""Draws a chart as SVG: bars, or lines if its columns count something."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from .report import OURS, Chart, shown

WIDTH = 720
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
LINES_HEIGHT = 352
LOGARITHMIC_FROM = 20
"""A chart of lines whose largest value is this many times its smallest has a logarithmic scale."""


class Theme(NamedTuple):
    text: str
    faint: str
    grid: str
    ours: str
    others: list[str]


THEMES = {
    "light": Theme(
        "#1f2328",
        "#59636e",
        "#d1d9e0",
        "#00684a",
        ["#0a58a8", "#b34700", "#8a3a74", "#6b6b00", "#59636e"],
    ),
    "dark": Theme(
        "#e6edf3",
        "#9aa4af",
        "#3d444d",
        "#4cc79a",
        ["#79b8ff", "#ff9d5c", "#e39bd0", "#d6d65c", "#b0bac5"],
    ),
}
BAR = {"light": "#9aa4af", "dark": "#68727d"}


def draw(chart: Chart, theme: str) -> str:
    """The whole SVG file, in the colours of the theme *light* or *dark*."""
    colours = THEMES[theme]
    elements = _lines(chart, colours) if chart.across else _bars(chart, colours, BAR[theme])
    height = LINES_HEIGHT if chart.across else _bars_height(chart)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            f' width="{WIDTH}" height="{height}" font-family="{FONT}" font-size="13"'
            f' fill="{colours.text}">',
            f"<title>{escape(chart.title)}, {escape(chart.unit)}</title>",
            f"<desc>{escape(in_words(chart))}</desc>",
            f'<text x="8" y="22" font-size="16" font-weight="600">{escape(chart.title)}</text>',
            f'<text x="8" y="41" fill="{colours.faint}">{escape(chart.unit)}; less is better'
            "</text>",
            *elements,
            "</svg>",
            "",
        ]
    )


def in_words(chart: Chart) -> str:
    """Every value of the chart, for readers who do not see it."""
    rows = []
    for name, values in chart.rows.items():
        columns = chart.columns if len(chart.columns) > 1 else [""]
        pairs = zip(columns, values, strict=True)
        cells = [f"{column} {shown(value)}".strip() for column, value in pairs if value is not None]
        rows.append(f"{name}: {', '.join(cells)}")
    counted = f" by {chart.across}" if chart.across else ""
    return f"{chart.unit}{counted}. {'; '.join(rows)}."


def _bars_height(chart: Chart) -> int:
    bars = sum(value is not None for values in chart.rows.values() for value in values)
    headings = len(chart.columns) if len(chart.columns) > 1 else 0
    return 60 + 28 * headings + 22 * bars


def _bars(chart: Chart, colours: Theme, grey: str) -> Iterator[str]:
    """A group of bars for each column."""
    left = 24 + 7 * max(map(len, chart.rows))
    largest = max(value for values in chart.rows.values() for value in values if value is not None)
    scale = (WIDTH - left - 80) / largest
    y = 52
    for column, heading in enumerate(chart.columns):
        if len(chart.columns) > 1:
            y += 20
            yield f'<text x="8" y="{y}" font-weight="600">{escape(heading)}</text>'
            y += 8
        for name, values in chart.rows.items():
            if (value := values[column]) is None:
                continue
            length = max(1.0, value * scale)
            colour, weight = (colours.ours, 600) if name.startswith(OURS) else (grey, 400)
            yield (
                f'<text x="{left - 8}" y="{y + 14}" text-anchor="end" font-weight="{weight}">'
                f"{escape(name)}</text>"
            )
            yield f'<rect x="{left}" y="{y + 2}" width="{length:.1f}" height="16" fill="{colour}"/>'
            yield f'<text x="{left + length + 6:.1f}" y="{y + 14}">{shown(value)}</text>'
            y += 22


def _lines(chart: Chart, colours: Theme) -> Iterator[str]:
    """A line for each row, and its name at the end."""
    left, top, bottom = 64, 64, 300
    # Room for the longest name and its value, at some eight points a letter.
    right = WIDTH - 50 - 8 * max(map(len, chart.rows))
    step = (right - left) / max(1, len(chart.columns) - 1)
    scale = Scale(chart, top, bottom)
    for value in scale.marks():
        y = scale.place(value)
        yield f'<path d="M{left} {y:.1f}H{right}" stroke="{colours.grid}"/>'
        yield (
            f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{colours.faint}">'
            f"{shown(value)}</text>"
        )
    for number, column in enumerate(chart.columns):
        x = left + number * step
        yield f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{escape(column)}</text>'
    middle = (left + right) / 2
    yield (
        f'<text x="{middle:.1f}" y="{bottom + 40}" text-anchor="middle" fill="{colours.faint}">'
        f"{escape(chart.across)}</text>"
    )
    ends: list[tuple[float, float, str, str]] = []
    for number, (name, values) in enumerate(chart.rows.items()):
        colour = colours.ours if name.startswith(OURS) else colours.others[number % 5]
        places = [
            (left + column * step, scale.place(value))
            for column, value in enumerate(values)
            if value is not None
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        width = 3 if name.startswith(OURS) else 2
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        for x, y in places:
            yield _marker(number, x, y, colour)
        last = next(value for value in reversed(values) if value is not None)
        ends.append((places[-1][1], places[-1][0], f"{name} {shown(last)}", colour))
    yield from _names(ends, right + 14)


def _names(ends: list[tuple[float, float, str, str]], x: float) -> Iterator[str]:
    """The names beside the ends of the lines, from top to bottom, and never on one another."""
    lowest = 0.0
    for y, end, text, colour in sorted(ends):
        lowest = max(y + 4, lowest + 17)
        place = x if end + 14 >= x else end + 10
        yield (
            f'<text x="{place:.1f}" y="{lowest:.1f}" fill="{colour}" font-weight="600">'
            f"{escape(text)}</text>"
        )


def _marker(number: int, x: float, y: float, colour: str) -> str:
    """Another shape for each line, for readers who do not see the colours."""
    shapes = [
        f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
        f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z",
        f"M{x:.1f} {y - 5:.1f}l5 9h-10z",
        f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",
        f"M{x - 6:.1f} {y - 2:.1f}h12v4h-12z",
    ]
    return f'<path d="{shapes[number % len(shapes)]}" fill="{colour}"/>'


class Scale:
    """Where a value is drawn: from zero on, or logarithmic if the values differ much."""

    def __init__(self, chart: Chart, top: float, bottom: float) -> None:
        values = [each for row in chart.rows.values() for each in row if each is not None]
        positive = [each for each in values if each > 0]
        self._top, self._bottom = top, bottom
        self._is_logarithmic = len(positive) == len(values) and max(
            values
        ) > LOGARITHMIC_FROM * min(values)
        if self._is_logarithmic:
            self._low = 10.0 ** math.floor(math.log10(min(values)))
            self._high = 10.0 ** math.ceil(math.log10(max(values)))
        else:
            self._low, self._high = 0.0, _round_up(max(values) or 1.0)

    def place(self, value: float) -> float:
        if self._is_logarithmic:
            share = math.log10(value / self._low) / math.log10(self._high / self._low)
        else:
            share = value / self._high
        return self._bottom - share * (self._bottom - self._top)

    def marks(self) -> list[float]:
        if not self._is_logarithmic:
            return [self._high * number / 4 for number in range(5)]
        decades = round(math.log10(self._high / self._low))
        return [self._low * 10**number for number in range(decades + 1)]


def _round_up(value: float) -> float:
    """The next number above with one digit, of which a quarter reads well."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(step * decade for step in (1, 2, 4, 8, 10) if step * decade >= value)
