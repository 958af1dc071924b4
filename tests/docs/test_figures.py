"""The figures on the pages are those that were measured, beside the command that prints them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from bench.pages import FIGURES, FIRST_PAGE, ROOT, drawn, pages, parts_shown
from bench.plots import THEMES, draw
from bench.report import Chart

PAGES = [page for page in pages() if page.name != "CHANGELOG.md"]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ ", re.MULTILINE)
_FIGURE = re.compile(
    r"\d[\d.,]* ?(?:µs|ms|calls/s|req/s)(?!\w)"
    r"|\d[\d.,]* ?% of (?:a|one|the) (?:core|time)"
    r"|\d[\d.,]* times (?:as|more|less|faster|slower)"
)
_COMMAND = re.compile(r"`(?:make|python -m bench) [^`]+`")
# These are settings, not measurements.
SETTINGS = ["at most one in 5 ms from each process"]
CHART = Chart(
    name="example",
    title="A call & its size",
    unit="ms",
    columns=["1", "10", "100"],
    rows={"Answerback": [0.1, 0.2, 0.4], "<other>": [1.0, 20.0, None]},
)


def test_the_tables_and_pictures_are_those_of_the_measured_figures() -> None:
    files = drawn()

    stale = [str(path.relative_to(ROOT)) for path in files if path.read_text() != files[path]]
    assert stale == [], "run: python -m bench --redraw"


def test_every_place_for_figures_is_filled() -> None:
    shown = [part for part in parts_shown() if part != FIRST_PAGE]

    assert {"startup", "http", "rest", "sessions", "memory"} <= set(shown)
    assert [part for part in shown if not Path(FIGURES, f"{part}.json").exists()] == []


def test_no_picture_is_left_over() -> None:
    text = "".join(page.read_text() for page in PAGES)

    assert [path.name for path in FIGURES.glob("*.svg") if f"/{path.name}" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_section_with_figures_has_the_command_that_prints_them(page: Path) -> None:
    """Contract: a reader can repeat each measurement that the documentation mentions."""
    prose = _FENCE.sub("", page.read_text())
    for setting in SETTINGS:
        prose = prose.replace(setting, "")

    sections = [each for each in _HEADING.split(prose) if not _COMMAND.search(each)]
    assert [found[0] for each in sections for found in _FIGURE.finditer(each)] == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("across", ["", "tools"])
def test_a_picture_has_a_title_and_every_value_in_words(theme: str, across: str) -> None:
    chart = msgspec.structs.replace(CHART, across=across)

    picture = ElementTree.fromstring(draw(chart, theme))

    name = "{http://www.w3.org/2000/svg}"
    assert picture.get("role") == "img"
    assert picture.findtext(f"{name}title") == "A call & its size, ms"
    words = picture.findtext(f"{name}desc") or ""
    assert "Answerback: 1 0.10, 10 0.20, 100 0.40" in words
    assert "<other>: 1 1.0, 10 20" in words
