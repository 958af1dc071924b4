"""Runs the command line in a subprocess, with pipes or on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from tests.forked import run as run_forked

TOOLS = '''
import os, subprocess, sys
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from answerback import App, Context, Image, Link, NotFound, RateLimited, Reply, failure, success

print("printed as the module is loaded")
app = App("tools", version="1.2.3")

@dataclass
class City:
    name: str
    people: int

@app.tool
def add(x: int, y: int = 1) -> int:
    """Add two numbers.

    More about it.

    Args:
        x: The first number.
        y: The second number.
    """
    return x + y

@app.tool
def describe(
    tags: list[str], when: date, loud: bool = False, size: Literal["small", "big"] = "big"
) -> str:
    """Describe what was given."""
    return f"{tags} {when} {loud} {size}"

@app.tool
def city() -> City:
    """Give a record."""
    return City("Oslo", 709037)

@app.tool
def nothing() -> None:
    """Give nothing back."""

@app.tool
def both() -> Reply[int]:
    """Give a text and data."""
    return success("It is seven.", 7)

@app.tool
def size_of(content: bytes) -> int:
    return len(content)

@app.tool
def echo(text: str) -> str:
    return text

@app.tool
def picture() -> Image:
    return Image(bytes(range(256)), "image/png")

@app.tool
def album() -> list[Image | Link]:
    return [Image(b"12345", "image/png"), Link("https://example.com", "more")]

@app.tool
def missing() -> int:
    raise NotFound("no such city", hint="try Oslo")

@app.tool
def limited() -> int:
    raise RateLimited("slow down")

@app.tool
def secret() -> int:
    raise RuntimeError("password=hunter2")

@app.tool
def noisy() -> str:
    print("printed")
    os.write(1, b"written to fd 1\\n")
    subprocess.run(["echo", "printed by a subprocess"])
    return "quiet"

@app.tool
def read_stdin() -> str:
    return subprocess.run(["cat"], stdout=subprocess.PIPE).stdout.decode() + sys.stdin.read()

@app.tool
def steps(ctx: Context) -> str:
    ctx.progress(1, 2, "half way")
    ctx.log("a note")
    ctx.log({"n": 1}, level="warning")
    return "done"

@app.tool
async def later(x: int) -> int:
    return x + 1

@app.tool
def modules() -> list[str]:
    import sys
    heavy = ("asyncio", "logging", "difflib", "starlette", "uvicorn")
    return [name for name in heavy if name in sys.modules]

@app.tool
def interrupted() -> int:
    raise KeyboardInterrupt

if __name__ == "__main__":
    app.run()
'''


class Done(NamedTuple):
    """The output and the exit status of a command."""

    stdout: str
    stderr: str
    exit: int


Run: TypeAlias = Callable[..., Done]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    return file


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """Writes these lines to a file of recorded replies."""

    def write(*lines: str, name: str = "replies.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("".join(f"{line}\n" for line in lines))
        return file

    return write


@pytest.fixture
def answerback(tmp_path: Path) -> Run:
    """Runs `answerback ARGUMENTS` in the folder of the tools, with pipes for its streams."""

    def run(*arguments: str, stdin: bytes = b"", **environ: str) -> Done:
        result = run_forked(
            ["-m", "answerback", *arguments], input=stdin, cwd=tmp_path, env=os.environ | environ
        )
        return Done(result.stdout.decode(), result.stderr.decode(), result.returncode)

    return run


@pytest.fixture
def on_a_terminal(tmp_path: Path) -> Run:
    """Runs `answerback ARGUMENTS` on a terminal and types *typed*; `stdout` has all output."""

    def run(*arguments: str, typed: bytes = b"") -> Done:
        leader, terminal = pty.openpty()
        command = [sys.executable, "-m", "answerback", *arguments]
        with subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path
        ) as process:
            os.close(terminal)
            os.write(leader, typed)
            seen = _read_all(leader)
            status = process.wait(timeout=60)
        os.close(leader)
        return Done(seen.decode().replace("\r\n", "\n"), "", status)

    return run


def _read_all(leader: int) -> bytes:
    parts = []
    # At the end, reading a terminal is an error on Linux and gives nothing elsewhere.
    try:
        while part := os.read(leader, 65536):
            parts.append(part)
    except OSError:
        pass
    return b"".join(parts)
