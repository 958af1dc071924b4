"""The modelled frameworks show what the frameworks themselves showed in `make matrix`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.matrix.hosts import shown_text
from tests.matrix.ours import app
from tests.matrix.parts import CASES, Case, cell

from answerback import connect, success
from answerback.dialects.hosts import FRAMEWORKS

MATRIX = Path(__file__).parents[2] / "docs" / "reference" / "matrix.md"


def measured() -> dict[tuple[str, str], str]:
    """The cells of Answerback in the table, by framework and reply."""
    table = MATRIX.read_text().split("\n\n")
    lines = next(each for each in table if each.startswith("| reply | ")).splitlines()
    titles, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {
        (title, row[0]): found.partition(" / ")[0]
        for row in rows
        for title, found in zip(titles[1:], row[1:], strict=True)
    }


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("case", CASES, ids=[case.tool for case in CASES])
def test_a_model_sees_what_the_framework_showed_when_it_was_run(framework: str, case: Case) -> None:
    with connect(app) as server:
        seen = server.call(case.tool).as_seen_by(framework)

    found = "**raises**" if "raises" in seen.cut else cell(case, shown_text(seen))
    assert found == measured()[FRAMEWORKS[framework].title, case.about]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_page_names_each_framework(framework: str) -> None:
    assert f"`{framework}`" in MATRIX.read_text()


def test_a_framework_that_shows_the_whole_result_needs_more_tokens_than_one_half() -> None:
    reply = success("Found one city.", {"name": "Oslo"})

    tokens = {name: reply.as_seen_by(name).tokens for name in FRAMEWORKS}

    assert tokens["google-genai"] > tokens["langchain"] > tokens["pydantic-ai"]
