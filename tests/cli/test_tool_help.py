"""`call NAME --help` shows a tool's arguments and an example that works."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("tools")


def test_help_for_a_tool_shows_its_arguments_and_an_example(answerback: Run) -> None:
    done = answerback("call", "tools.py", "add", "--help")

    assert done.exit == 0
    assert done.stdout == (
        "usage: answerback call tools.py add x=INTEGER [y=INTEGER]\n\n"
        "Add two numbers.\n\nMore about it.\n\n"
        "arguments:\n"
        "  x  integer, required   The first number.\n"
        "  y  integer, default 1  The second number.\n\n"
        "example:\n"
        "  answerback call tools.py add x=1\n"
    )


def test_help_for_bytes_offers_text_or_a_file(answerback: Run) -> None:
    done = answerback("call", "tools.py", "size_of", "--help")

    assert "size_of content=TEXT|@FILE\n" in done.stdout
    assert "  content  text or @file, required\n" in done.stdout
    assert done.stdout.endswith("size_of content=@file\n")


OBJECTS = """
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from answerback import App

app = App("objects")

@dataclass
class City:
    name: str
    people: int

@dataclass
class Tree:
    twigs: list["Tree"]
    above: "Tree | None"

@app.tool
def move(city: City, to: tuple[int, str], past: list[City] = []) -> str:
    return f"{city} {to} {past}"

@app.tool
def grow(tree: Tree, by: Annotated[int, Meta(gt=4)], most: Annotated[float, Meta(le=0.5)]) -> str:
    return f"{tree} {by} {most}"
"""


@pytest.fixture
def objects(tmp_path: Path) -> None:
    (tmp_path / "objects.py").write_text(OBJECTS)


@pytest.mark.usefixtures("objects")
def test_help_for_objects_names_their_members(answerback: Run) -> None:
    done = answerback("call", "objects.py", "move", "--help")

    assert done.stdout == (
        "usage: answerback call objects.py move city=OBJECT to=LIST [past=LIST-OF-OBJECT]\n\n"
        "arguments:\n"
        "  city  object with name, people, required\n"
        "  to    list of integer, text, required\n"
        "  past  list of object with name, people, default []\n\n"
        "example:\n"
        """  answerback call objects.py move 'city={"name":"text","people":1}' to=1,text\n"""
    )


@pytest.mark.parametrize(
    ("file", "tool"),
    [
        *(("tools.py", tool) for tool in ("add", "describe", "echo", "later")),
        ("objects.py", "move"),
        ("objects.py", "grow"),
    ],
)
@pytest.mark.usefixtures("objects")
def test_the_example_in_a_tools_help_works(answerback: Run, file: str, tool: str) -> None:
    line = answerback("call", file, tool, "--help").stdout.splitlines()[-1]

    done = answerback(*shlex.split(line)[1:])

    assert done.exit == 0, done.stderr


def test_help_without_a_tool_is_about_the_command(answerback: Run) -> None:
    for arguments in (("call", "--help"), ("call", "tools.py", "-h")):
        done = answerback(*arguments)

        assert done.exit == 0
        assert "--dialect" in done.stdout


LISTED = '''
from answerback import App

app = App("listed")

@app.tool
def search(query: str, limit: int = 1) -> str:
    """Search.

    Args:
        query: The words; operators:
            - AND
            - OR
        limit: How many.
    """
    return query
'''


def test_further_lines_of_a_description_are_below_its_first(
    answerback: Run, tmp_path: Path
) -> None:
    (tmp_path / "listed.py").write_text(LISTED)

    done = answerback("call", str(tmp_path / "listed.py"), "search", "--help")

    assert (
        "  query  text, required      The words; operators:\n"
        "                             - AND\n"
        "                             - OR\n"
        "  limit  integer, default 1  How many.\n"
    ) in done.stdout


CHOICES = """
from enum import Enum
from typing import Literal
from answerback import App

app = App("choices")


class Status(Enum):
    OPEN = "open"
    CLOSED = "closed"


@app.tool
def find(
    status: Status | None = None,
    level: Literal["low", "high"] | None = None,
    size: Literal["s", "l"] | int = "s",
    names: list[Literal["x", "y"]] = [],
) -> list[str]:
    return [str(status and status.value), str(level), str(size), *names]
"""


def test_the_usage_shows_the_values_of_optional_choices_as_they_are_typed(
    answerback: Run, tmp_path: Path
) -> None:
    (tmp_path / "choices.py").write_text(CHOICES)

    listed = answerback("list", "choices.py").stdout
    typed = ("status=open", "level=low", "size=l", "names=x,y")

    assert "find [status=open|closed] [level=low|high] [size=s|l|INTEGER] " in listed
    assert "[names=LIST-OF-x|y]" in listed
    assert answerback("call", "choices.py", "find", *typed).stdout == (
        '{"result":["open","low","l","x","y"]}\n'
    )
