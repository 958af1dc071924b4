"""The console's page is small enough to be shown at once."""

from __future__ import annotations

from answerback.server.console.console_page import console_page

MAX_PAGE = 150 * 1000


def test_the_page_has_at_most_150_kb() -> None:
    assert len(console_page().body) <= MAX_PAGE


def test_comments_are_not_sent() -> None:
    lines = console_page().body.decode().splitlines()

    assert [line for line in lines if line.lstrip().startswith("//")] == []
