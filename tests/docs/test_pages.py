"""The pages do what they say. On each page, from top to bottom:

- ```python blocks run in one namespace (await is allowed); one that begins with `# name.py`
  is also written to that file
- a ```text block right after one is what it prints
- ```console blocks run in a folder with that file and a copy of `examples/`, on a terminal;
  the lines under a `$ command` are what it says. `…` stands for anything in a line, a line of
  its own for any lines; how many ms something took is not compared. A command that serves
  does so, on another port, to the page's end. A block that shows no output is not run.
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
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = "127.0.0.1:8000"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOOK = re.compile(r"\b\d+ ms")
_RULE = re.compile("─+")
_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")


class Block(NamedTuple):
    kind: str
    text: str
    line: int
    after: str
    """The kind of block right before it, or an empty string."""


class Step(NamedTuple):
    """A command and what it says."""

    command: str
    output: str


def blocks(page: Path) -> list[Block]:
    whole = page.read_text()
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(whole):
        after = found[-1].kind if found and not whole[end : fence.start()].strip() else ""
        line = whole.count("\n", 0, fence.start()) + 2
        found.append(Block(fence[1], fence[2], line, after))
        end = fence.end()
    return found


def steps(text: str) -> list[Step]:
    """The commands of a console block; one that ends in a backslash goes on in the next line."""
    found: list[Step] = []
    for line in text.splitlines():
        if found and found[-1].command.endswith("\\"):
            found[-1] = Step(f"{found[-1].command}\n{line}", "")
        elif line.startswith("$ "):
            found.append(Step(line[2:], ""))
        else:
            found[-1] = Step(found[-1].command, f"{found[-1].output}{line}\n")
    return found


def matches(shown: str, seen: str) -> bool:
    shown, seen = (_TOOK.sub("some ms", _RULE.sub("─", text)) for text in (shown, seen))
    lines = [
        r"(?:.*\n)*?" if line == "…" else r".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.strip("\n").split("\n")
    ]
    return re.fullmatch("".join(lines), seen.strip("\n") + "\n") is not None


class Shell:
    """Runs the commands of one page."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._status = 0
        self._address = SHOWN
        here = os.path.dirname(sys.executable)
        self._environ = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / ".venv").symlink_to(sys.prefix)

    def run(self, command: str) -> str:
        if command in ("make run", "make demo"):
            command = _recipe(command.removeprefix("make "))
            return f"{command}\n{self.run(command)}"
        if " serve" in command and "--help" not in command:
            said = self._stack.enter_context(self._serving(command))
        else:
            said = self._on_a_terminal(command.replace(SHOWN, self._address))
        return _COLOUR.sub("", said).replace(self._address, SHOWN)

    def _on_a_terminal(self, command: str) -> str:
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
            said = _read_all(leader)
            self._status = process.wait(timeout=20)
        os.close(leader)
        return re.sub(r"\r+\n", "\n", said.decode())

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
            said = ""
            while "Ctrl-C" not in said:
                line = server.stderr.readline()
                assert line, said
                said += line
            found = re.search(r"127\.0\.0\.1:\d+", said)
            self._address = found.group() if found else SHOWN
            try:
                yield said
            finally:
                server.terminate()


def _recipe(target: str) -> str:
    """What `make TARGET` runs last."""
    made = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made is not None
    return made[1].splitlines()[-1].strip().replace("$(BIN)", ".venv/bin")


def _read_all(leader: int) -> bytes:
    parts = []
    # On Linux the end of a terminal is an error, elsewhere it is nothing more to read.
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
        """What the block prints."""
        if named := re.match(r"# (\w+\.py)\n", block.text):
            (self._folder / named[1]).write_text(block.text)
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        # So many lines before it that a traceback tells the page's own.
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
    """Whether there is a curl that knows --json (7.82)."""
    if shutil.which("curl") is None:
        return False
    told = subprocess.run(["curl", "--help", "all"], capture_output=True, check=False)
    return b"--json" in told.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page: Path, python: Python, shell: Shell) -> None:
    if _needs_curl(page):
        pytest.skip("there is no curl with --json")
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
                assert matches(output, seen), f"{where} $ {command} says\n{seen}"


def test_a_wildcard_matches_within_a_line_or_lines_by_itself() -> None:
    assert matches("a … c\n…\nz", "a b c\nd\ne\nz\n")
    assert matches("a\n…\nz", "a\nz\n")
    assert not matches("a\n…\nz", "a\nb\n")
    assert not matches("a …", "b c\n")
