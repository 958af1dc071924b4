"""`list` shows what a tool requires of its callers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

BANK = '''
from answerback import App, Context
from answerback.gates import linked, login, scope, subscription

app = App("bank")

def is_paid(ctx: Context) -> bool:
    return True

@app.tool(requires=[GATES])
def show() -> int:
    """Show it."""
    return 1
'''


@pytest.mark.parametrize(
    ("gates", "shown"),
    [
        ("login()", "Show it. (requires login)"),
        ("scope('a', 'b')", "Show it. (requires scope a b)"),
        (
            "subscription('pro', check=is_paid), linked('plaid', check=is_paid)",
            "Show it. (requires subscription pro, linked plaid)",
        ),
        ("is_paid", "Show it. (requires is_paid)"),
        ("", "Show it."),
    ],
)
def test_a_line_names_the_gates_of_the_tool(
    answerback: Run, tmp_path: Path, gates: str, shown: str
) -> None:
    (tmp_path / "bank.py").write_text(BANK.replace("GATES", gates))

    assert answerback("list", "bank.py").stdout == f"show  {shown}\n"
