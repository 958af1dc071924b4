"""Ctrl-C ends every command with the status 130, also while the program is loaded."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

LOADS_FOREVER = """
import signal, sys
sys.stderr.write("loading\\n")
sys.stderr.flush()
signal.pause()
"""
RUNS_FOREVER = """
import signal, sys
from answerback import App

app = App("tools")

@app.tool
def wait() -> int:
    sys.stderr.write("running\\n")
    sys.stderr.flush()
    signal.pause()
    return 1

@app.tool
async def wait_on_loop() -> int:
    import asyncio
    sys.stderr.write("running\\n")
    sys.stderr.flush()
    await asyncio.Event().wait()
    return 1
"""


def interrupted(folder: Path, source: str, *arguments: str) -> tuple[int, str]:
    """The exit status and the further stderr of a command that gets SIGINT after its first line."""
    (folder / "tools.py").write_text(source)
    with subprocess.Popen(
        [sys.executable, "-m", "answerback", *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        try:
            rest = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    return process.returncode, rest


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "tools.py"),
        ("mcp", "tools.py"),
        ("call", "tools.py", "wait"),
        ("list", "tools.py"),
        ("openapi", "tools.py"),
        ("install", "claude", "tools.py"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_ctrl_c_while_the_program_is_loaded_ends_the_command_quietly(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert interrupted(tmp_path, LOADS_FOREVER, *arguments) == (130, "")


@pytest.mark.parametrize("tool", ["wait", "wait_on_loop"])
def test_ctrl_c_ends_a_call_that_runs(tmp_path: Path, tool: str) -> None:
    assert interrupted(tmp_path, RUNS_FOREVER, "call", "tools.py", tool) == (130, "")
