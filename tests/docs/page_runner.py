"""The blocks of a page; Python and a shell that run them as a reader would.

The shell runs each command on a terminal, in one folder; variables that a command exports and the
folder that it changes to hold for the next ones. A command that serves runs on a free port, until
the end of the page or `stop_server`; the commands after it call that port where they name the one
on the page. If the page shows an answer at a prompt, `(yes/no): yes`, the shell types it.

`docker build` and `docker run` need no Docker: the shell copies the files that the Dockerfile
copies, and runs its last command with its variables. It does not run what builds the image.
"""

from __future__ import annotations

import ast
import asyncio
import io
import json
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
TUTORIAL = ROOT / "docs" / "start" / "tutorial.md"
_LISTED = re.compile(r"^\d+\. \[[^\]]+\]\(([^)]+)\)", re.MULTILINE)
TUTORIAL_STEPS = [TUTORIAL.parent / link for link in _LISTED.findall(TUTORIAL.read_text())]
"""The tutorial's pages, in the order of its list."""
PASTED = {
    "README": [ROOT / "README.md"],
    "index": [ROOT / "docs" / "index.md"],
    "tutorial": TUTORIAL_STEPS,
}
"""The pages that test_pasted_pages.py runs, each group in one folder; test_pages.py runs the
others."""
FRAMEWORKS = ROOT / "docs" / "guides" / "recipes" / "agent-frameworks.md"
"""The page that `make clients` runs as a whole, in an environment with the frameworks."""
_HOST = "127.0.0.1"
_PORT = re.compile(r" --port (\d+)")
_ADDRESS = re.compile(rf"{re.escape(_HOST)}:\d+")
_MAIN = 'if __name__ == "__main__":'
_FILE = r"`([\w.]+)`"
_SAVE = re.compile(rf"\b[Ss]ave this as {_FILE}")
_REPLACE = re.compile(rf"\b[Rr]eplace the function `(\w+)` in {_FILE} with this")
_ADD = re.compile(rf"\b[Aa]dd this to `([\w.]+)`, above the line `{re.escape(_MAIN)}`")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DURATION = re.compile(r"\b\d+ ms")
_RULE = re.compile("─+")
_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")
_ERASED = re.compile(r"[^\n]*\r\x1b\[K")
_TYPED = re.compile(r"(?:\(yes/no\):|\[y/N\]) (\S+)$", re.MULTILINE)
_PROMPTS = (b"(yes/no): ", b"[y/N] ")
_LEARNED = {
    "YOUR-KEY": re.compile(r"^key +(\S+)$", re.MULTILINE),
    "YOUR-DIGEST": re.compile(r"^digest +(\S+)$", re.MULTILINE),
    "YOUR-TASK": re.compile(r'"taskId":"([^"]+)"'),
}
"""What a reader copies from an output, by the words in its place on the page."""


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
        self.folder = folder
        self._state = state
        self._stack = stack
        self._real: dict[str, str] = {}
        """Where a server listens, by the address that the page shows."""
        self._learned = dict.fromkeys(_LEARNED, "")
        self.is_serving = False
        self.status = 0
        here = os.path.dirname(sys.executable)
        self._environ = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
        # pytest loads our plugin and none of the others that are installed, which take a second.
        self._environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self._environ["PYTEST_PLUGINS"] = "answerback.testing"

    def export(self, name: str, value: str) -> None:
        self._environ[name] = value

    def run(self, command: str, shown: str = "") -> str:
        """The output of the command; of a server, what it prints before the first request.

        *shown* is the output on the page.
        """
        if command in ("make run", "make demo"):
            command = _recipe(command.removeprefix("make "))
            return f"{command}\n{self.run(command)}"
        if command.startswith("docker "):
            command = _without_docker(command, self.folder)
        command = self.fill_in(command)
        if serves(command):
            output = self._stack.enter_context(self._serving(command))
        else:
            output = self._run_on_terminal(command, _TYPED.findall(shown))
            self._learn(output)
        on_page = {real: address for address, real in self._real.items()}
        text = _COLOUR.sub("", _ERASED.sub("", output))
        return _ADDRESS.sub(lambda found: on_page.get(found[0], found[0]), text)

    def fill_in(self, text: str) -> str:
        """The text with the servers' addresses, and with what the reader copied from an output."""
        for words, value in self._learned.items():
            text = text.replace(words, value) if value else text
        return _ADDRESS.sub(lambda found: self._real.get(found[0], found[0]), text)

    def stop_server(self) -> None:
        self._stack.close()

    def _learn(self, output: str) -> None:
        found = {words: pattern.search(output) for words, pattern in _LEARNED.items()}
        self._learned |= {words: match[1] for words, match in found.items() if match}

    def _resumed(self, command: str) -> list[str]:
        """The command in a shell with the variables and the folder that the last one left."""
        state = shlex.quote(str(self._state))
        return ["bash", "-c", f"[ ! -e {state} ] || . {state}\n{command}"]

    def _run_on_terminal(self, command: str, answers: list[str]) -> str:
        leader, terminal = pty.openpty()
        state = shlex.quote(str(self._state))
        keep = f"{{ export -p; printf 'cd %q' \"$PWD\"; }} > {state}"
        script = f"(exit {self.status})\n{command}\nstatus=$?; {keep}; exit $status"
        with subprocess.Popen(
            self._resumed(script),
            cwd=self.folder,
            env=self._environ,
            stdin=terminal if answers else subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
        ) as process:
            os.close(terminal)
            output = _read_all(leader, answers)
            self.status = process.wait(timeout=60)
        os.close(leader)
        return re.sub(r"\r+\n", "\n", output.decode())

    @contextmanager
    def _serving(self, command: str) -> Iterator[str]:
        port = _PORT.search(command)
        on_free_port = _PORT.sub("", command) + " --port 0"
        with subprocess.Popen(
            self._resumed(f"exec env {on_free_port}"),
            cwd=self.folder,
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
            self.is_serving = True
            try:
                yield announced
            finally:
                self.is_serving = False
                server.terminate()


def _recipe(target: str) -> str:
    """The last command that `make TARGET` runs."""
    made = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made is not None
    return made[1].splitlines()[-1].strip().replace("$(BIN)", ".venv/bin")


def serves(command: str) -> bool:
    is_server = " serve" in command or command.startswith("uvicorn ")
    return is_server and "--help" not in command


def _read_all(leader: int, answers: list[str]) -> bytes:
    """Read to the end; type the next answer at each prompt."""
    output, waiting = b"", list(answers)
    # At the end of a terminal, Linux raises an error; other systems return nothing.
    try:
        while part := os.read(leader, 65536):
            output += part
            if waiting and output.endswith(_PROMPTS):
                os.write(leader, f"{waiting.pop(0)}\n".encode())
    except OSError:
        pass
    return output


def _without_docker(command: str, folder: Path) -> str:
    """A command that does what Docker would, as far as the Dockerfile's files and command go."""
    text = (folder / "Dockerfile").read_text()
    image, volume = folder / "image", folder / "volume"
    if command.startswith("docker build "):
        copied = re.findall(r"^COPY (.+) \.$", text, re.MULTILINE)
        return f"mkdir {image} {volume} && cp {' '.join(copied)} {image}"
    assert command.startswith("docker run "), command
    variables = re.findall(r"^ENV (.+)$", text, re.MULTILINE)
    words = json.loads(re.findall(r"^CMD (\[.+\])$", text, re.MULTILINE)[0])
    run = " ".join(["-C", str(image), *variables, *words]).replace("/data", str(volume))
    return f"env {run}"


def needs_curl(page: Path) -> bool:
    """Whether the page calls curl, and it is not installed or lacks the option --json (7.82)."""
    text = page.read_text()
    if "$ curl" not in text:
        return False
    if shutil.which("curl") is None:
        return True
    shown = subprocess.run(["curl", "--help", "all"], capture_output=True, check=False)
    return "--json" in text and b"--json" not in shown.stdout


def is_pasted(block: Block) -> bool:
    """Whether the block is part of a file that the reader saves."""
    return block.kind == "python" or _SAVE.search(_paragraph(block)) is not None


def paste(block: Block, folder: Path) -> None:
    """Write the block where the paragraph before it says."""
    if saved := _SAVE.search(_paragraph(block)):
        (folder / saved[1]).write_text(block.text)
    elif replaced := _REPLACE.search(_paragraph(block)):
        _replace_function(replaced[1], block.text, folder / replaced[2])
    else:
        added = _ADD.search(_paragraph(block))
        assert added, f"line {block.line}: the paragraph before does not say where to paste"
        file = folder / added[1]
        above, line, below = file.read_text().partition(_MAIN)
        assert line, f"{file.name} has no line {_MAIN}"
        file.write_text(f"{above}{block.text}\n\n{line}{below}")


def _paragraph(block: Block) -> str:
    return " ".join(block.before.split())


def _replace_function(name: str, text: str, file: Path) -> None:
    source = file.read_text()
    (function,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    first = min(node.lineno for node in (function, *function.decorator_list))
    lines = source.splitlines(keepends=True)
    lines[first - 1 : function.end_lineno] = [text]
    file.write_text("".join(lines))
