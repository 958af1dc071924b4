"""`list` shows what a tool requires of its callers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from answerback import App, Context
from answerback.cli.list import list_tools
from answerback.gates import linked, login, scope, subscription


def is_paid(ctx: Context) -> bool:
    return True


@pytest.mark.parametrize(
    ("gates", "shown"),
    [
        ([login()], "Show it. (requires login)"),
        ([scope("a", "b")], "Show it. (requires scope a b)"),
        (
            [subscription("pro", check=is_paid), linked("plaid", check=is_paid)],
            "Show it. (requires subscription pro, linked plaid)",
        ),
        ([is_paid], "Show it. (requires is_paid)"),
        ([], "Show it."),
    ],
)
def test_a_line_names_the_gates_of_the_tool(gates: list[Callable[..., Any]], shown: str) -> None:
    app = App("bank")

    @app.tool(requires=gates)
    def show() -> int:
        """Show it."""
        return 1

    assert list_tools(app) == f"show  {shown}"


def test_the_gates_of_the_app_come_first() -> None:
    app = App("bank", requires=[login()])

    @app.tool(requires=[is_paid])
    def show() -> int:
        return 1

    assert list_tools(app) == "show  (requires login, is_paid)"
