"""What `make ported` takes for an answer that is as good as the published server's."""

from __future__ import annotations

import pytest
from tests.ported.patched import Told, is_as_good


def told(text: str, data: object = None, *, is_error: bool = False, image: str = "") -> Told:
    return Told(is_error, text, [image] if image else [], data)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (told("5"), told('{"result":5}', {"result": 5})),
        (told("a.py\nb.py", {"result": ["a.py", "b.py"]}), told("", {"result": ["b.py", "a.py"]})),
        (told('{"error": "no file"}'), told("no file", is_error=True)),
        (told("no file", is_error=True), told("no file\nHint: write one", is_error=True)),
        (told("1 validation error for f", is_error=True), told("x: missing", is_error=True)),
        (told("", image="AA=="), told("", image="AA==")),
    ],
)
def test_an_answer_with_the_same_information_is_as_good(theirs: Told, ours: Told) -> None:
    assert is_as_good(theirs, ours)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (told("5"), told("6")),
        (told("5"), told("no file", is_error=True)),
        (told("no file", is_error=True), told("The tool failed unexpectedly", is_error=True)),
        (told("no file a.py", is_error=True), told("no file", is_error=True)),
        (told("", image="AA=="), told("AA==")),
    ],
)
def test_an_answer_that_lost_information_is_worse(theirs: Told, ours: Told) -> None:
    assert not is_as_good(theirs, ours)
