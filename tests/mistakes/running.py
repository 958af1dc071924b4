"""Reads the mistakes on the page, and makes them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from tests.forked import run

import answerback

PAGE = Path(__file__).with_name("mistakes.md")
SOURCES = Path(answerback.__file__).parents[1]
BEFORE = 'from answerback import App, Context\n\napp = App("shop")\n\n'
AFTER = '\nif __name__ == "__main__":\n    app.run()\n'
_BLOCK = re.compile(r"```(\w+)\n(.*?)```\n", re.DOTALL)
# What differs from run to run: references of errors, addresses in memory, ports, and times.
_CHANGING = (
    (re.compile(r"reference [0-9a-f]{8,}"), "reference …"),
    (re.compile(r" at 0x[0-9a-f]+"), " at 0x…"),
    (re.compile(r"127\.0\.0\.1:\d{4,}"), "127.0.0.1:PORT"),
    (re.compile(r"^\d{4}-\d\d-\d\d.*?(?=answerback)", re.MULTILINE), ""),
)


class Mistake(NamedTuple):
    """A small program, the command that runs it, and what is printed."""

    title: str
    program: str
    command: str
    said: str


def mistakes() -> list[Mistake]:
    """The mistakes on the page."""
    found = []
    for part in PAGE.read_text().split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        blocks = dict(_BLOCK.findall(rest))
        command = blocks.get("console", "$ python app.py list\n").removeprefix("$ ").strip()
        found.append(Mistake(title, blocks.get("python", ""), command, blocks.get("text", "")))
    return found


def section(mistake: Mistake, said: str) -> str:
    """The section of the page about a mistake."""
    lines = [f"## {mistake.title}", ""]
    if mistake.program:
        lines += ["```python", mistake.program.rstrip("\n"), "```"]
    if mistake.command != "python app.py list":
        lines += ["```console", f"$ {mistake.command}", "```"]
    return "\n".join([*lines, "```text", f"{said}```"])


def whole_program(mistake: Mistake) -> str:
    """The program of a mistake; a short one is put between the usual lines."""
    if re.match(r"(from|import|def main)\b", mistake.program):
        return mistake.program
    return f"{BEFORE}{mistake.program}{AFTER}"


def said_by(mistake: Mistake, folder: Path) -> str:
    """Make the mistake, and return what a person reads: stderr, or stdout if that is empty."""
    (folder / "app.py").write_text(whole_program(mistake))
    package = folder / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "server.py").write_text(f"from . import server\n{BEFORE}{AFTER}")
    program, *arguments = shlex.split(mistake.command)
    arguments = arguments if program == "python" else ["-m", "answerback", *arguments]
    env = os.environ | {"PYTHONPATH": str(SOURCES), "NO_COLOR": "1"}
    done = run(arguments, cwd=folder, env=env)
    return _readable((done.stderr or done.stdout).decode(), folder)


def _readable(text: str, folder: Path) -> str:
    """Leave out what changes, and all of a traceback but its last lines."""
    text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    text = re.sub(r"^Traceback.*?(?=^[A-Za-z])", "…\n", text, flags=re.DOTALL | re.MULTILINE)
    for pattern, instead in _CHANGING:
        text = pattern.sub(instead, text)
    return text.rstrip() + "\n"
