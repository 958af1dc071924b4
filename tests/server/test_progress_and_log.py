"""`ctx.progress` and `ctx.log` with values that cannot be sent: the same on every wire."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = """
import math
from answerback import App, Context

app = App("notes")

class Unprintable:
    def __repr__(self):
        raise ValueError("hunter2")
    __str__ = __float__ = __repr__

cycle = []
cycle.append(cycle)

@app.tool
def note(ctx: Context) -> str:
    ctx.progress(math.nan)
    ctx.progress(math.inf, 5)
    ctx.progress(Unprintable())
    ctx.progress(10**400)
    ctx.progress(1, math.nan)
    ctx.progress(2, math.inf, "half \\ud800")
    ctx.progress(3, Unprintable(), Unprintable())
    ctx.log("half \\ud800", "error")
    ctx.log({"key": ["\\ud800"]}, "error")
    ctx.log("unknown level", "loud")
    ctx.log(Unprintable(), "error", logger="half \\ud800")
    ctx.log({"inner": Unprintable(), "number": math.nan}, "error")
    ctx.log(cycle, "error")
    return "done"

app.run()
"""
LOGGED = [
    "half ?",
    "{'key': ['\\ud800']}",
    "unknown level",
    "<Unprintable>",
    {"inner": "<Unprintable>", "number": None},
    "[[...]]",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.py"
    path.write_text(FILE)
    return path


def run(file: Path, *arguments: str, stdin: bytes = b"", **environ: str) -> Any:
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        env=os.environ | environ,
    )


def test_mcp_sends_valid_notifications_and_the_call_succeeds(file: Path) -> None:
    params = {"name": "note", "arguments": {}, "_meta": {"progressToken": 1}}
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "client", "version": "1"},
    }
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params},
    ]

    done = run(file, "mcp", stdin=b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    _, *notes, result = map(json.loads, done.stdout.splitlines())
    assert result["result"]["structuredContent"] == {"result": "done"}
    progress = [n["params"] for n in notes if n["method"] == "notifications/progress"]
    assert progress == [
        {"progressToken": 1, "progress": 1},
        {"progressToken": 1, "progress": 2, "message": "half ?"},
        {"progressToken": 1, "progress": 3, "message": "<Unprintable>"},
    ]
    logged = [n["params"] for n in notes if n["method"] == "notifications/message"]
    assert [each["data"] for each in logged] == LOGGED
    assert {each["level"] for each in logged} == {"error"}
    assert {each["logger"] for each in logged} == {"note", "half ?"}


def test_the_command_line_shows_the_same_and_the_call_succeeds(file: Path) -> None:
    done = run(file, "call", "note")

    assert (done.returncode, done.stdout) == (0, b'{"result":"done"}\n')
    shown = [line.removeprefix(b"error: ") for line in done.stderr.splitlines()]
    assert shown[0] == b"half ?"
    assert shown[2:4] == [b"unknown level", b"<Unprintable>"]
    assert len(shown) == len(LOGGED)


def test_cgi_logs_the_same_and_the_call_succeeds(file: Path) -> None:
    done = run(file, "cgi", REQUEST_METHOD="POST", PATH_INFO="/note", CONTENT_LENGTH="0")

    assert done.stdout.startswith(b"Status: 200")
    assert done.stdout.endswith(b'{"result":"done"}')
    assert done.stderr.decode().splitlines() == [str(each) for each in LOGGED]
