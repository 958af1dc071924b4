"""A program that runs its App without a command: a host is served MCP, a person reads the help."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.forked import run as run_forked

SERVER = """
print("loading the settings")
from answerback import App

app = App("shop")

@app.tool
def add(x: int) -> int:
    return x + 1

print("ready")
if __name__ == "__main__":
    app.run()
"""
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


@pytest.fixture
def server(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(SERVER)
    return file


@pytest.mark.parametrize("arguments", [(), ("mcp",)])
def test_a_host_that_gives_no_command_is_served_mcp(
    server: Path, arguments: tuple[str, ...]
) -> None:
    done = run_forked([str(server), *arguments], input=PING)

    assert done.stdout == PONG
    assert done.stderr == b"loading the settings\nready\n"
    assert done.returncode == 0


def test_a_host_that_starts_a_console_script_or_a_module_is_served_mcp(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("from answerback import App\napp = App('shop')\n")
    (package / "__main__.py").write_text("from . import app\napp.run()\n")
    script = tmp_path / "shop-server"
    script.write_text("import sys\nfrom shop import app\nsys.exit(app.run())\n")

    done = [
        run_forked(arguments, input=PING, cwd=tmp_path)
        for arguments in ([str(script)], ["-m", "shop"])
    ]

    assert [each.stdout for each in done] == [PONG, PONG]


def test_a_web_server_that_gives_no_command_is_answered_by_cgi(server: Path) -> None:
    request = {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "GET", "PATH_INFO": "/nothing"}

    done = run_forked([str(server)], env=os.environ | request)

    assert done.stdout.startswith(b"Status: 405")


@pytest.mark.parametrize("piped", ["stdin", "stdout", None])
def test_a_person_at_a_terminal_reads_the_help(server: Path, piped: str | None) -> None:
    leader, terminal = pty.openpty()
    streams: dict[str, Any] = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    if piped is not None:
        streams[piped] = subprocess.PIPE

    with subprocess.Popen([sys.executable, str(server)], **streams) as process:
        os.close(terminal)
        seen = b"" if piped == "stdout" else os.read(leader, 65536)
        seen += process.communicate(timeout=60)[0] or b""
        while b"usage: " not in seen:
            seen += os.read(leader, 65536)
    os.close(leader)

    assert b"shop.py COMMAND [options]" in seen
    assert process.returncode == 0


def test_a_program_with_an_empty_stdin_says_that_nobody_was_served(server: Path) -> None:
    """A CI job or a service: without this line it would end in silence."""
    done = subprocess.run(
        [sys.executable, str(server)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert b"--help shows the commands" in done.stderr
    assert done.returncode == 0


CIRCULAR = """
from answerback import App

app = App("circular")

@app.tool
def first() -> int:
    return 1

import more

if __name__ == "__main__":
    app.run()
"""
MORE = """
from circular import app

@app.tool
def second() -> int:
    return 2
"""


@pytest.mark.parametrize("started", [["circular.py"], ["-m", "circular"]], ids=["file", "module"])
def test_a_file_that_is_loaded_twice_says_why_tools_are_missing(
    tmp_path: Path, started: list[str]
) -> None:
    (tmp_path / "circular.py").write_text(CIRCULAR)
    (tmp_path / "more.py").write_text(MORE)

    done = subprocess.run(
        [sys.executable, *started, "list"], cwd=tmp_path, capture_output=True, text=True
    )

    assert done.stdout == "first\n"
    assert done.stderr == (
        "circular.py was loaded twice, as the program and as the module 'circular' that another "
        "file imports; there are now two Apps, and this one lacks everything that the other file "
        "registers; create the App in a separate file that both import\n"
    )


def test_the_program_is_named_as_a_shell_reads_it_if_its_path_has_a_space(tmp_path: Path) -> None:
    file = tmp_path / "my shop.py"
    file.write_text(SERVER)

    done = run_forked([str(file), "--help"], env=os.environ)

    assert f"python '{file}' call".encode() in done.stdout
