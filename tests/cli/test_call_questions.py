"""Questions of a tool (elicitation), which `call` asks the user at the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

ASKING = """
from dataclasses import dataclass
from typing import Annotated, Literal

from answerback import App, Ask, Context

app = App("asking")

@dataclass
class Guest:
    name: str
    age: int
    meal: Literal["fish", "soup"] = "soup"
    nick: str | None = None

@dataclass
class Odd:
    name: Annotated[str, "red \\x1b[31m\\nFAKE"]

@app.tool
async def ask_oddly(ctx: Context) -> Odd:
    return await ctx.elicit("Who?", Odd)

@app.tool
def delete(name: str, sure: Annotated[bool, Ask("Delete it?")]) -> str:
    return f"{name}: {sure}"

@app.tool
async def invite(ctx: Context) -> Guest:
    return await ctx.elicit("Who comes?", Guest)

@app.tool
async def pick(ctx: Context) -> list[str]:
    return await ctx.elicit("Which?", list[Literal["a", "b", "c"]])
"""

END = b"\x04"


@pytest.fixture(autouse=True)
def asking(tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(ASKING)


def test_a_question_is_asked_at_the_terminal(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", "asking.py", "delete", "name=it", typed=b"yes\n")

    assert "Delete it?\n" in seen.stdout
    assert seen.stdout.endswith("it: True\n")


def test_an_invalid_answer_is_asked_for_again(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", "asking.py", "delete", "name=it", typed=b"perhaps\nno\n")

    assert seen.stdout.count("sure (yes/no): ") == 2
    assert "sure: expected bool, got str 'perhaps'\n" in seen.stdout
    assert seen.stdout.endswith("it: False\n")
    assert seen.exit == 0


def test_only_invalid_answers_are_asked_for_again(on_a_terminal: Run) -> None:
    typed = b"Ann\nold\nfsh\n\n42\nfish\n"

    seen = on_a_terminal("call", "asking.py", "invite", typed=typed)

    assert seen.stdout.count("name: ") == 1
    assert seen.stdout.endswith("Name: Ann\nAge: 42\nMeal: fish\nNick: none\n")


def test_the_end_of_input_declines_the_question(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", "asking.py", "delete", "name=it", typed=b"perhaps\n" + END)

    assert "(INPUT_DECLINED)" in seen.stdout
    assert seen.exit == 73


def test_several_choices_are_separated_by_commas(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", "asking.py", "pick", typed=b"a, c\n")

    assert seen.stdout.endswith("comma-separated): a, c\n")


def test_a_fields_label_cannot_drive_the_terminal(on_a_terminal: Run) -> None:
    """The form may come from any server."""
    seen = on_a_terminal("call", "asking.py", "ask_oddly", typed=b"Ann\n")

    assert "red \\x1b[31m\\nFAKE: " in seen.stdout
