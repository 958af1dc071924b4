"""Text of others cannot drive the terminal: control, C1 and bidi characters are escaped."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.records.support import app_with

from answerback.records import JSONL, Records

Run = Callable[..., Any]

UNSAFE = "\x1b[31m\x9b5m\u202e"
TOOLS = f"""
from typing import Annotated
from answerback import App, ToolError
UNSAFE = {UNSAFE!r}
app = App("tools" + UNSAFE, version="1" + UNSAFE)

def fail() -> int:
    raise ToolError("it failed " + UNSAFE, code="CODE" + UNSAFE, hint="do " + UNSAFE)

def echo(text: Annotated[str, "The text. " + UNSAFE] = UNSAFE) -> str:
    return text

fail.__doc__ = "It fails. " + UNSAFE + "\\n\\nMore " + UNSAFE
app.add_tool(fail)
app.add_tool(echo)
if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    reply = {"content": [{"type": "text", "text": f"Error: no {UNSAFE}"}]}
    (tmp_path / f"log{UNSAFE}.jsonl").write_text(json.dumps(reply) + "\n")
    (tmp_path / f"empty{UNSAFE}").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("call", "tools.py", "fail"),
        ("call", "tools.py", "fail", "--dialect", "rest"),
        ("call", "tools.py", "fail", "--dialect", "mcp"),
        ("call", "tools.py", "fail", "--help"),
        ("call", "tools.py", "echo", "--help"),
        ("call", "tools.py", "echo", f"text=a{UNSAFE}"),
        ("call", "tools.py", "echo", f"text=a{UNSAFE}", "--dialect", "mcp"),
        ("call", "tools.py", "echo", f"text=@{UNSAFE}"),
        ("call", "tools.py", "echo", f"{UNSAFE}=1"),
        ("call", "tools.py", "echo", UNSAFE),
        ("call", "tools.py", f"no{UNSAFE}"),
        ("call", "tools.py", f"--no{UNSAFE}"),
        ("call", "tools.py", "echo", "--json", f"[{UNSAFE}"),
        ("list", "tools.py"),
        ("list", "tools.py", "--json"),
        ("list", f"none{UNSAFE}.py"),
        ("openapi", "tools.py"),
        (f"none{UNSAFE}",),
        ("lint", f"log{UNSAFE}.jsonl"),
        ("lint", "--format", "json", f"log{UNSAFE}.jsonl"),
        ("lint", "--format", "sarif", f"log{UNSAFE}.jsonl"),
        ("lint", f"empty{UNSAFE}"),
        ("lint", f"none{UNSAFE}"),
        ("rule", UNSAFE),
        ("audit", "tail", "--json", "audit.jsonl"),
        ("audit", "stats", "--json", "audit.jsonl"),
        ("audit", "tail", f"none{UNSAFE}"),
        ("audit", f"none{UNSAFE}"),
    ],
)
def test_a_terminal_is_sent_no_unsafe_character(
    arguments: tuple[str, ...], folder: Path, on_a_terminal: Run
) -> None:
    records = Records(JSONL(folder / "audit.jsonl"))
    asyncio.run(app_with(records).call(f"no{UNSAFE}"))
    records.close()

    seen = on_a_terminal(*arguments).stdout

    assert seen
    assert "\x1b[31m" not in seen
    assert "\x9b" not in seen
    assert "\u202e" not in seen


def test_a_pipe_gets_the_text_of_a_tool_unchanged(folder: Path, answerback: Run) -> None:
    done = answerback("call", "tools.py", "echo", f"text=a{UNSAFE}")

    assert json.loads(done.stdout) == {"result": f"a{UNSAFE}"}
    assert "\u202e" in done.stdout


HOSTILE = shlex.join([sys.executable, str(Path(__file__).with_name("hostile_names.py"))])


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", HOSTILE),
        ("list", "mcp.json"),
        ("call", HOSTILE, "link"),
        ("call", HOSTILE, "blob"),
        ("call", HOSTILE, "image"),
        ("call", HOSTILE, "error"),
        ("call", "mcp.json", "n\nFAKE_error"),
        ("call", HOSTILE, "link", "--help"),
        ("call", HOSTILE),
        ("call", HOSTILE, "link", "--server-log"),
        ("list", HOSTILE, "--resources"),
        ("list", HOSTILE, "--prompts"),
        ("read", HOSTILE, "x:a"),
        ("prompt", HOSTILE, "a"),
    ],
)
def test_a_line_break_of_a_server_begins_no_line(
    arguments: tuple[str, ...], tmp_path: Path, on_a_terminal: Run
) -> None:
    command, *words = shlex.split(HOSTILE)
    servers = {"n\nFAKE": {"command": command, "args": words}, "m\nFAKE": {"command": "no\nFAKE"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    seen = on_a_terminal(*arguments).stdout

    assert "FAKE" in seen
    assert not [line for line in seen.splitlines() if line.startswith("FAKE")]
