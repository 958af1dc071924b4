"""A program that has an App and does not run it says so, if it was given a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from answerback import App

app = App("shop")

@app.tool
def add(x: int) -> int:
    return x
"""


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", ["list", "mcp"])
def test_a_command_for_an_app_that_is_not_run_is_answered_with_what_to_add(
    tmp_path: Path, command: str
) -> None:
    program = tmp_path / "shop.py"
    program.write_text(PROGRAM)

    done = run(program, command)

    assert done.stderr == (
        "shop.py has an App but does not run it, so nothing was done; add app.run() at its end, "
        f"or type: answerback {command} shop.py\n"
    )


def test_a_program_that_only_defines_an_app_is_told_how_to_run_it(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(PROGRAM)

    assert run(program).stderr == (
        "shop.py has an App but does not run it; add app.run() at its end, "
        "or type: answerback list shop.py\n"
    )


@pytest.mark.parametrize("arguments", [["--verbose"], ["other"]])
def test_a_program_with_arguments_of_its_own_is_left_alone(
    tmp_path: Path, arguments: list[str]
) -> None:
    program = tmp_path / "shop.py"
    program.write_text(PROGRAM)

    assert run(program, *arguments).stderr == ""


def test_a_program_that_runs_its_app_says_nothing(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(PROGRAM + "app.run()\n")

    assert run(program, "list").stderr == ""


MOUNTED = """
app.asgi()
"""
OWN_ARGUMENTS = """
import argparse

argparse.ArgumentParser().parse_args(["--help"])
"""
CALLED = """
import asyncio

print(asyncio.run(app.call("add", x=1)).data)
"""
CONNECTED = """
from answerback import connect

with connect(app) as server:
    print(server.call("add", x=1).data)
"""


DOCUMENTED = """
print(app.openapi())
"""


@pytest.mark.parametrize("more", [MOUNTED, OWN_ARGUMENTS, CALLED, CONNECTED, DOCUMENTED])
@pytest.mark.parametrize("arguments", [[], ["call"]])
def test_a_program_that_uses_its_app_by_itself_is_left_alone(
    tmp_path: Path, more: str, arguments: list[str]
) -> None:
    program = tmp_path / "shop.py"
    program.write_text(PROGRAM + more)

    assert run(program, *arguments).stderr == ""


def test_a_program_that_imports_the_app_of_another_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    program = tmp_path / "report.py"
    program.write_text("from shop import add, app\nprint(app, add(1))\n")

    assert run(program).stderr == ""


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("raise OSError('no network')", "OSError: no network"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("app.tool(read_onyl=True)(add)", "did you mean 'read_only'?"),
        ("raise SystemExit('set API_KEY')", "set API_KEY"),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["list"]])
def test_a_program_that_fails_before_it_runs_its_app_shows_only_the_failure(
    tmp_path: Path, line: str, last: str, arguments: list[str]
) -> None:
    program = tmp_path / "shop.py"
    program.write_text(f"{PROGRAM}\n{line}\napp.run()\n")

    done = run(program, *arguments)

    assert done.stderr.splitlines()[-1].endswith(last)


def test_a_program_without_run_that_fails_shows_only_the_failure(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(f"{PROGRAM}\nraise OSError('no network')\n")

    assert run(program, "list").stderr.splitlines()[-1] == "OSError: no network"
