"""The terminals in the pictures of the docs: a command, and the texts that its picture claims."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from tests.conftest import ROOT

REPLIES = """\
{"content": [{"type": "text", "text": "Error: no ferry today"}], "isError": false}
{"content": [{"type": "text", "text": "Oslo is in Norway."}], "isError": false}
{"content": [], "structuredContent": [1, 2]}
"""
"""The replies of another server, three lines that `lint` reads."""
_NORMAL = [(0, 0, 0), (179, 38, 30), (18, 112, 63), (138, 90, 0), (11, 92, 173), (120, 60, 140)]
_BRIGHT = [(164, 170, 180), (255, 138, 128), (95, 208, 141), (240, 185, 85), (108, 178, 255)]
THEMES = {
    "light": TerminalTheme(
        (246, 245, 241),
        (31, 35, 40),
        [*_NORMAL, (20, 110, 120), (90, 96, 105)],
    ),
    "dark": TerminalTheme(
        (29, 32, 39),
        (230, 230, 227),
        [*_BRIGHT, (200, 150, 230), (110, 200, 210), (230, 230, 227)],
    ),
}
# rich's own form loads its font from another site.
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


class Terminal(NamedTuple):
    name: str
    command: str
    """The command as it is shown."""
    arguments: list[str]
    columns: int
    texts: list[str]


TERMINALS = [
    Terminal(
        "demo",
        "make demo",
        [str(ROOT / "examples" / "demo.py")],
        84,
        ["wire", "REST", "MCP", "CGI", "division by zero"],
    ),
    Terminal(
        "lint",
        "answerback lint replies.jsonl",
        ["-m", "answerback", "lint", "replies.jsonl"],
        100,
        ["AB201", "replies.jsonl", "Error: no ferry today"],
    ),
]


def output_of(terminal: Terminal) -> str:
    """What the command writes to a terminal, with its colours."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "replies.jsonl").write_text(REPLIES)
        ours, theirs = pty.openpty()
        env = {**os.environ, "COLUMNS": str(terminal.columns), "TERM": "xterm-256color"}
        env.pop("NO_COLOR", None)
        with subprocess.Popen(
            [sys.executable, *terminal.arguments],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=env,
        ):
            os.close(theirs)
            return _read_to_end(ours)


def _read_to_end(terminal: int) -> str:
    parts = []
    with open(terminal, "rb", buffering=0) as stream:
        # Linux raises an error at the end of a terminal.
        while part := _read(stream.fileno()):
            parts.append(part)
    return b"".join(parts).decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def svg_of(terminal: Terminal, colours: str) -> str:
    """A picture of the terminal; raises AssertionError if it lacks a text that it claims."""
    written = output_of(terminal)
    console = Console(
        record=True, width=terminal.columns, file=StringIO(), force_terminal=True, highlight=False
    )
    console.print(Text(f"$ {terminal.command}", style="bold"))
    text = Text.from_ansi(written.strip())
    console.print(text)
    # rich cuts off the bottom of the last line.
    console.print()
    missing = [each for each in terminal.texts if each not in text.plain]
    assert not missing, f"{terminal.name} does not show {missing}:\n{text.plain}"
    svg = console.export_svg(title="", theme=THEMES[colours], unique_id=terminal.name)
    fonts = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    return _FONT_FACES.sub("", svg).replace("Fira Code, monospace", fonts)
