"""The messages on the troubleshooting page are messages of the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "start" / "troubleshooting.md").read_text()
MESSAGES = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
MISTAKES = (ROOT / "tests" / "mistakes" / "mistakes.md").read_text()
SOURCES = [path.read_text() for path in (ROOT / "src").rglob("*.py")]


def test_there_are_at_least_twenty_messages() -> None:
    assert len(set(MESSAGES)) >= 20


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_among_those_of_the_mistakes_or_in_the_code(message: str) -> None:
    parts = [part for part in message.split("…") if part.strip(" ';:,")]
    line = re.compile(".*".join(map(re.escape, parts)))
    in_code = any(all(part in source for part in parts) for source in SOURCES)

    assert line.search(MISTAKES) or in_code
