"""Runs the examples on the pages and compares their output. On each page, from top to bottom:

- ```python blocks run in one namespace, and may use await. A block that begins with `# name.py`
  is also written to that file; one that begins with `# test_name.py` is only written.
- A ```text block right after a ```python block is its expected output.
- ```console blocks run on a terminal, in a folder with those files and a copy of `examples/`.
  The lines under a `$ command` are its expected output. `…` stands for any text in a line, and
  on a line of its own for any number of lines. Durations in ms are not compared. A command that
  serves runs on another port, until the end of the page. A block without output is not run.
"""

from __future__ import annotations

import ast
import asyncio
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*/*.md"))]
SHOWN = "127.0.0.1:8000"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DURATION = re.compile(r"\b\d+ ms")
_RULE = re.compile("─+")
_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")


class Block(NamedTuple):
    kind: str
    text: str
    line: int
    after: str
    """The kind of the block directly before it, or an empty string."""


class Step(NamedTuple):
    """A command and its expected output."""

    command: str
    output: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(text):
        after = found[-1].kind if found and not text[end : fence.start()].strip() else ""
        line = text.count("\n", 0, fence.start()) + 2
        found.append(Block(fence[1], fence[2], line, after))
        end = fence.end()
    return found


def steps(text: str) -> list[Step]:
    """The commands of a console block; a backslash continues a command on the next line."""
    found: list[Step] = []
    for line in text.splitlines():
        if found and found[-1].command.endswith("\\"):
            found[-1] = Step(f"{found[-1].command}\n{line}", "")
        elif line.startswith("$ "):
            found.append(Step(line[2:], ""))
        else:
            found[-1] = Step(found[-1].command, f"{found[-1].output}{line}\n")
    return found


def matches(shown: str, printed: str) -> bool:
    shown, printed = (_DURATION.sub("some ms", _RULE.sub("─", each)) for each in (shown, printed))
    lines = [
        r"(?:.*\n)*?" if line == "…" else r".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.strip("\n").split("\n")
    ]
    return re.fullmatch("".join(lines), printed.strip("\n") + "\n") is not None


class Shell:
    """Runs the commands of one page."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._status = 0
        self._address = SHOWN
        here = os.path.dirname(sys.executable)
        self._environ = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
        # pytest loads our plugin and none of the others that are installed, which take a second.
        self._environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self._environ["PYTEST_PLUGINS"] = "answerback.testing"
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / ".venv").symlink_to(sys.prefix)

    def run(self, command: str) -> str:
        if command in ("make run", "make demo"):
            command = _recipe(command.removeprefix("make "))
            return f"{command}\n{self.run(command)}"
        if " serve" in command and "--help" not in command:
            output = self._stack.enter_context(self._serving(command))
        else:
            output = self._run_on_terminal(command.replace(SHOWN, self._address))
        return _COLOUR.sub("", output).replace(self._address, SHOWN)

    def _run_on_terminal(self, command: str) -> str:
        leader, terminal = pty.openpty()
        script = f"(exit {self._status})\n{command}"
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
        ) as process:
            os.close(terminal)
            output = _read_all(leader)
            self._status = process.wait(timeout=60)
        os.close(leader)
        return re.sub(r"\r+\n", "\n", output.decode())

    @contextmanager
    def _serving(self, command: str) -> Iterator[str]:
        words = re.sub(r" --port \d+", "", f"{command} ").split()
        with subprocess.Popen(
            [*words, "--port", "0"],
            cwd=self._folder,
            env=self._environ,
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stderr is not None
            announced = ""
            while "Ctrl-C" not in announced:
                line = server.stderr.readline()
                assert line, announced
                announced += line
            found = re.search(r"127\.0\.0\.1:\d+", announced)
            self._address = found.group() if found else SHOWN
            try:
                yield announced
            finally:
                server.terminate()


def _recipe(target: str) -> str:
    """The last command that `make TARGET` runs."""
    made = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made is not None
    return made[1].splitlines()[-1].strip().replace("$(BIN)", ".venv/bin")


def _read_all(leader: int) -> bytes:
    parts = []
    # At the end of a terminal, Linux raises an error; other systems return nothing.
    try:
        while part := os.read(leader, 65536):
            parts.append(part)
    except OSError:
        pass
    return b"".join(parts)


class Python:
    """Runs the python blocks of one page."""

    def __init__(self, page: Path, folder: Path, runner: asyncio.Runner) -> None:
        self._page = page
        self._folder = folder
        self._runner = runner
        self.module = types.ModuleType(f"docs_{page.stem}")

    def run(self, block: Block) -> str:
        """Run the block and return its output."""
        if named := re.match(r"# (\w+\.py)\n", block.text):
            (self._folder / named[1]).write_text(block.text)
            if named[1].startswith("test_"):
                return ""
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        # Empty lines before the block make a traceback show the line numbers of the page.
        source = "\n" * (block.line - 1) + block.text
        code = compile(source, str(self._page), "exec", flags, dont_inherit=True)
        with redirect_stdout(io.StringIO()) as printed:
            awaited = eval(code, vars(self.module))
            if awaited is not None:
                self._runner.run(awaited)
        return printed.getvalue()


@pytest.fixture
def python(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Python]:
    with asyncio.Runner() as runner:
        python = Python(page, tmp_path, runner)
        monkeypatch.setitem(sys.modules, python.module.__name__, python.module)
        monkeypatch.chdir(tmp_path)
        yield python


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with ExitStack() as stack:
        yield Shell(tmp_path, stack)


def _needs_curl(page: Path) -> bool:
    return "$ curl" in page.read_text() and not _has_curl()


def _has_curl() -> bool:
    """Whether curl is installed and supports --json (7.82)."""
    if shutil.which("curl") is None:
        return False
    shown = subprocess.run(["curl", "--help", "all"], capture_output=True, check=False)
    return b"--json" in shown.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_what_it_shows(
    page: Path, python: Python, shell: Shell
) -> None:
    if _needs_curl(page):
        pytest.skip("curl with --json is not installed")
    printed = ""
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.kind == "python":
            printed = python.run(block)
        elif block.kind == "text" and block.after == "python":
            assert matches(block.text, printed), f"{where} prints\n{printed}"
        elif block.kind == "console" and any(step.output for step in steps(block.text)):
            for command, output in steps(block.text):
                seen = shell.run(command)
                assert matches(output, seen), f"{where} $ {command} prints\n{seen}"


def test_a_wildcard_matches_text_in_a_line_or_on_its_own_any_lines() -> None:
    assert matches("a … c\n…\nz", "a b c\nd\ne\nz\n")
    assert matches("a\n…\nz", "a\nz\n")
    assert not matches("a\n…\nz", "a\nb\n")
    assert not matches("a …", "b c\n")
