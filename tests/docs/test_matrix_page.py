"""The page of the matrix has the frameworks and the replies that `make matrix` runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.matrix.__main__ import read_frameworks
from tests.matrix.parts import CASES, Case, cell

PAGE = Path(__file__).parent.parent.parent / "docs" / "matrix.md"


def test_the_table_has_each_framework_and_each_reply() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]

    frameworks = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    assert frameworks == [each.name for each in read_frameworks()]
    assert [line.split("|")[1].strip() for line in lines[2:]] == [case.about for case in CASES]
    assert len(CASES) == 15


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
