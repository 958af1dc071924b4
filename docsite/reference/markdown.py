"""Tables and marked parts of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from .source import ROOT

Row: TypeAlias = list[str]


def table(head: Row, rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table, and an empty line."""
    return [line(head), "|" + "---|" * len(head), *map(line, rows), ""]


def line(cells: Row) -> str:
    return f"| {' | '.join(map(cell, cells))} |"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def title_of(page: str) -> str:
    """Return the title of a page below `docs/`; an anchor is ignored."""
    path = ROOT / "docs" / page.partition("#")[0]
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def with_part(page: str, name: str, lines: list[str]) -> str:
    """Return a page with new lines between `<!-- reference: NAME -->` and `<!-- end -->`."""
    begin, end = f"<!-- reference: {name} -->\n", "<!-- end -->"
    found = re.compile(f"{re.escape(begin)}.*?{end}", re.DOTALL)
    if not found.search(page):
        raise LookupError(f"the page has no {begin.strip()}")
    made = begin + "\n" + "\n".join(lines) + "\n" + end
    return found.sub(lambda _: made, page)
