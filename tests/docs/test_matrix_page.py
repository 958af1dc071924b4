"""The page of the matrix has the frameworks and the replies that `make matrix` runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.matrix.__main__ import read_frameworks
from tests.matrix.parts import CASES, Case, cell

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "matrix.md"


def test_the_table_has_each_framework_and_each_reply() -> None:
    table = PAGE.read_text().partition("## Losses and remedies")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]

    frameworks = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    assert frameworks == [each.name for each in read_frameworks()]
    assert [line.split("|")[1].strip() for line in lines[2:]] == [case.about for case in CASES]
    assert len(CASES) == 15


def test_each_loss_in_the_table_has_something_that_an_author_can_do() -> None:
    table, _, advice = PAGE.read_text().partition("## Losses and remedies")
    rows = [line.strip("|").split("|")[1:] for line in table.splitlines() if line.startswith("| ")]
    cells = [cell.strip() for row in rows[1:] for cell in row]
    losses = {loss for cell in cells for loss in re.split(r", | / ", cell)} - {"all"}

    advised = {line.strip("|").split("|")[0].strip() for line in advice.splitlines() if "|" in line}

    assert losses
    assert losses <= advised


CASE = Case("t", "a case", {"text": "grey", "data": "humidity"}, never="secret")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("grey humidity", "all"),
        ("grey", "no data"),
        ("", "no text, no data"),
        ("grey humidity secret", "**shows what it must not**"),
        ("RAISED ValueError: x", "**raises**"),
    ],
)
def test_a_cell_names_what_is_missing(shown: str, expected: str) -> None:
    assert cell(CASE, shown) == expected
