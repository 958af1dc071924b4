"""A program that registers a refused function shows the author's line, not the library's steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from answerback import App

START = "from answerback import App\n\napp = App('shop')\n\n"


def stderr_of(program: Path, source: str) -> list[str]:
    program.write_text(source)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (f"{START}@app.tool(read_onyl=True)\ndef f(x: int) -> int: ...\n", "@app.tool(read_onyl="),
        (f"{START}@app.tool\ndef f(x) -> int: ...\n", "@app.tool"),
        (f"{START}def f(x) -> int: ...\napp.add_tool(f)\n", "app.add_tool(f)"),
        (f"{START}@app.resource('a://{{b}}')\ndef f() -> str: ...\n", "@app.resource('a://{b}')"),
        (f"{START}@app.prompt\ndef f(x) -> str: ...\n", "@app.prompt"),
    ],
)
def test_a_refused_function_shows_the_authors_line_and_at_most_one_of_the_library(
    tmp_path: Path, source: str, line: str
) -> None:
    file = tmp_path / "shop.py"

    shown = stderr_of(file, source)

    assert shown[0] == "Traceback (most recent call last):"
    assert shown[1].startswith(f'  File "{file}", line ')
    assert shown[2].strip().startswith(line)
    assert sum(each.startswith("  File ") for each in shown) <= 2
    assert shown[-1].startswith("TypeError: ")


def test_an_exception_of_an_authors_type_keeps_its_frames(tmp_path: Path) -> None:
    source = (
        START
        + "class Kind(type):\n    def __getattr__(self, name): raise ValueError('own')\n"
        + "class Pet(metaclass=Kind): ...\n@app.tool\ndef f(x: Pet) -> int: ...\n"
    )

    shown = stderr_of(tmp_path / "shop.py", source)

    assert sum(each.startswith("  File ") for each in shown) > 2
    assert shown[-1] == "ValueError: own"


def test_an_exception_of_the_authors_own_code_keeps_its_frames(tmp_path: Path) -> None:
    source = (
        START + "def first():\n    second()\ndef second():\n    raise ValueError('own')\nfirst()\n"
    )

    shown = stderr_of(tmp_path / "shop.py", source)

    assert sum(each.startswith("  File ") for each in shown) == 3
    assert shown[-1] == "ValueError: own"


def test_a_failure_in_another_method_keeps_the_frames_of_the_library(tmp_path: Path) -> None:
    """They are needed for a report."""
    source = START + "app.redeem(1, None)\n"

    shown = stderr_of(tmp_path / "shop.py", source)

    assert sum(each.startswith("  File ") for each in shown) > 1


def test_an_app_leaves_the_excepthook_of_the_program_as_it_is() -> None:
    before = sys.excepthook

    App("shop")

    assert sys.excepthook is before
