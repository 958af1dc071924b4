"""What authors read after a mistake: mistakes.md has each with its message.

After a change of a message, `python -m tests.mistakes` writes the page anew. Read the difference as
a newcomer would: does the message say what was found, and what to write?
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mistakes.running import Mistake, mistakes, said_by


def test_there_are_at_least_sixty_mistakes() -> None:
    assert len({mistake.title for mistake in mistakes()}) >= 60


@pytest.mark.parametrize("mistake", mistakes(), ids=lambda each: each.title)
def test_a_mistake_gets_the_message_on_the_page(mistake: Mistake, tmp_path: Path) -> None:
    assert said_by(mistake, tmp_path) == mistake.said
