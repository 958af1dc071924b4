"""The blocks of a page; Python and a shell that run them as a reader would.

The shell runs each command on a terminal, in one folder; variables that a command exports and the
folder that it changes to hold for the next ones. A command that serves runs on a free port, until
the end of the page; the commands after it call that port where they name the one on the page.
"""

from __future__ import annotations

import ast
import asyncio
import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PASTED = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "start" / "tutorial.md",
]
"""The pages that test_pasted_pages.py runs; test_pages.py runs the others."""
FRAMEWORKS = ROOT / "docs" / "guides" / "frameworks.md"
"""The page that `make clients` runs, in an environment with the frameworks."""
_HOST = "127.0.0.1"
_PORT = re.compile(r" --port (\d+)")
_ADDRESS = re.compile(rf"{re.escape(_HOST)}:\d+")
_MAIN = 'if __name__ == "__main__":'
_SAVE = re.compile(r"\b[Ss]ave this as `([\w.]+)`")
_ADD = re.compile(rf"\b[Aa]dd this to `([\w.]+)`, above the line `{re.escape(_MAIN)}`")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DURATION = re.compile(r"\b\d+ ms")
_RULE = re.compile("─+")
_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")


class Block(NamedTuple):
    kind: str
    text: str
    line: int
    before: str
    """The paragraph before it, or an empty string."""
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
        before = text[end : fence.start()].strip().split("\n\n")[-1]
        after = found[-1].kind if found and not before else ""
        line = text.count("\n", 0, fence.start()) + 2
        found.append(Block(fence[1], fence[2], line, before, after))
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


class Shell:
    """Runs the commands of one page in *folder*, and keeps its own state in *state*."""

    def __init__(self, folder: Path, state: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._state = state
        self._stack = stack
        self._real: dict[str, str] = {}
        """Where a server listens, by the address that the page shows."""
        self.status = 0
        here = os.path.dirname(sys.executable)
        self._environ = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
        # pytest loads our plugin and none of the others that are installed, which take a second.
        self._environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self._environ["PYTEST_PLUGINS"] = "answerback.testing"

    def export(self, name: str, value: str) -> None:
        self._environ[name] = value

    def run(self, command: str) -> str:
        """The output of the command; of a server, what it prints before the first request."""
        if command in ("make run", "make demo"):
            command = _recipe(command.removeprefix("make "))
            return f"{command}\n{self.run(command)}"
        command = _ADDRESS.sub(lambda found: self._real.get(found[0], found[0]), command)
        is_server = " serve" in command or command.startswith("uvicorn ")
        if is_server and "--help" not in command:
            output = self._stack.enter_context(self._serving(command))
        else:
            output = self._run_on_terminal(command)
        shown = {real: shown for shown, real in self._real.items()}
        return _ADDRESS.sub(lambda found: shown.get(found[0], found[0]), _COLOUR.sub("", output))

    def _resumed(self, command: str) -> list[str]:
        """The command in a shell with the variables and the folder that the last one left."""
        state = shlex.quote(str(self._state))
        return ["bash", "-c", f"[ ! -e {state} ] || . {state}\n{command}"]

    def _run_on_terminal(self, command: str) -> str:
        leader, terminal = pty.openpty()
        state = shlex.quote(str(self._state))
        keep = f"{{ export -p; printf 'cd %q' \"$PWD\"; }} > {state}"
        script = f"(exit {self.status})\n{command}\nstatus=$?; {keep}; exit $status"
        with subprocess.Popen(
            self._resumed(script),
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
        ) as process:
            os.close(terminal)
            output = _read_all(leader)
            self.status = process.wait(timeout=60)
        os.close(leader)
        return re.sub(r"\r+\n", "\n", output.decode())

    @contextmanager
    def _serving(self, command: str) -> Iterator[str]:
        port = _PORT.search(command)
        on_free_port = _PORT.sub("", command) + " --port 0"
        with subprocess.Popen(
            self._resumed(f"exec {on_free_port}"),
            cwd=self._folder,
            env=self._environ,
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stderr is not None
            announced = ""
            while "ctrl-c" not in announced.lower().replace("+", "-"):
                line = server.stderr.readline()
                assert line, announced
                announced += line
            if found := _ADDRESS.search(announced):
                self._real[f"{_HOST}:{port[1] if port else 8000}"] = found[0]
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


def needs_curl(page: Path) -> bool:
    """Whether the page calls curl, and it is not installed or lacks the option --json (7.82)."""
    text = page.read_text()
    if "$ curl" not in text:
        return False
    if shutil.which("curl") is None:
        return True
    shown = subprocess.run(["curl", "--help", "all"], capture_output=True, check=False)
    return "--json" in text and b"--json" not in shown.stdout


def paste(block: Block, folder: Path) -> None:
    """Write the block where the paragraph before it says."""
    paragraph = " ".join(block.before.split())
    if saved := _SAVE.search(paragraph):
        (folder / saved[1]).write_text(block.text)
        return
    added = _ADD.search(paragraph)
    assert added is not None, f"line {block.line}: the paragraph before does not say where to paste"
    file = folder / added[1]
    above, line, below = file.read_text().partition(_MAIN)
    assert line, f"{file.name} has no line {_MAIN}"
    file.write_text(f"{above}{block.text}\n\n{line}{below}")
