"""Writing a reply imports only the dialect that is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import sys
from answerback.contract import STANDARD
from answerback.dialects import write
from answerback.core.reply import failure, success
from answerback.core.shape import RESULT
write(success(data=10), {dialect!r}, RESULT, STANDARD)
write(failure("no"), {dialect!r}, RESULT, STANDARD)
print(*sorted(name for name in sys.modules if name in {watched!r}))
"""
HEAVY = ["answerback.dialects.readable", "asyncio", "logging", "email", "base64", "http.client"]
PARTS = ["envelope", "mcp", "mcp_blocks", "problem", "reply_text", "rest"]


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("rest", "rest"),
        ("mcp", "mcp mcp_blocks reply_text"),
        ("envelope", "envelope mcp_blocks reply_text"),
        ("problem", "problem rest"),
    ],
)
def test_a_dialect_imports_only_the_modules_it_needs(dialect: str, expected: str) -> None:
    watched = [*(f"answerback.dialects.{part}" for part in PARTS)]
    probe = PROBE.format(dialect=dialect, watched=watched)

    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)

    names = found.stdout.decode().split()
    assert names == [f"answerback.dialects.{part}" for part in expected.split()]


@pytest.mark.parametrize("dialect", ["rest", "mcp"])
def test_simple_replies_do_not_import_the_renderer(dialect: str) -> None:
    probe = PROBE.format(dialect=dialect, watched=HEAVY)

    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)

    assert found.stdout.split() == []
