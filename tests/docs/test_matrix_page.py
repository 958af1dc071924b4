"""The page of the matrix has the frameworks and the replies that `make matrix` runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.matrix.__main__ import read_frameworks
from tests.matrix.hosts import host_cells, seen_in_hosts, source_table
from tests.matrix.ours import app
from tests.matrix.parts import CASES, Case, cell

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "matrix.md"


def test_the_table_has_each_framework_and_each_reply() -> None:
    table = PAGE.read_text().partition("## Modelled hosts")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]

    frameworks = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    assert frameworks == [each.name for each in read_frameworks()]
    assert [line.split("|")[1].strip() for line in lines[2:]] == [case.about for case in CASES]
    assert len(CASES) == 15


def test_each_loss_in_the_table_has_something_that_an_author_can_do() -> None:
    table, _, advice = PAGE.read_text().partition("## Losses and remedies")
    # The table of the hosts' sources and the one of the members have no replies.
    replies = tuple(f"| {case.about} |" for case in CASES)
    lines = [line for line in table.splitlines() if line.startswith(replies)]
    rows = [line.strip("|").split("|")[1:] for line in lines]
    cells = [cell.strip() for row in rows for cell in row]
    losses = {loss for cell in cells for loss in re.split(r", | / ", cell)} - {"all"}

    advised = {line.strip("|").split("|")[0].strip() for line in advice.splitlines() if "|" in line}

    assert losses
    assert losses <= advised


def test_the_hosts_on_the_page_are_the_modelled_ones_with_their_dates_and_sources() -> None:
    assert f"\n{source_table()}" in PAGE.read_text()


def test_the_page_shows_what_the_hosts_show_of_our_replies_now() -> None:
    seen = seen_in_hosts({"ours": app})
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    section = rows[rows.index(next(row for row in rows if "reply in a modelled" in row)) + 1 :]

    for case, row in zip(CASES, section, strict=False):
        cells = [each.strip().partition(" / ")[0] for each in row.strip("|").split("|")]
        assert cells == [case.about, *host_cells(seen, case.tool)]


CASE = Case("t", "a case", {"text": "grey", "data": "humidity"}, never="secret")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("grey humidity", "all"),
        ("grey", "no data"),
        ("", "no text, no data"),
        ("grey humidity secret", "**shows what it must not**"),
        ("RAISED ValueError: x", "**raises**"),
        ("humidity [text: grey]", "all"),
        ("humidity [text: 4 bytes]", "text named"),
    ],
)
def test_a_cell_names_what_is_missing(shown: str, expected: str) -> None:
    assert cell(CASE, shown) == expected
