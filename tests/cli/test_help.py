import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serving import FIRST_LINES

from answerback import __version__
from answerback.cli.program import COMMANDS, WITHOUT_TARGET

Run = Callable[..., Any]


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_help_names_every_command_with_an_example(
    answerback: Run, arguments: tuple[str, ...]
) -> None:
    done = answerback(*arguments)

    assert done.exit == 0
    for command in COMMANDS:
        example = WITHOUT_TARGET.get(command, "calculator.py")
        assert f"answerback {command} {example}" in done.stdout


def test_the_example_file_in_the_help_works(answerback: Run, tmp_path: Path) -> None:
    text = answerback().stdout
    start, end = text.index("    from answerback"), text.index("Then `python")
    lines = text[start:end].splitlines()
    (tmp_path / "calculator.py").write_text("\n".join(line[4:] for line in lines))

    done = answerback("call", "calculator.py", "add", "x=7", "y=3")

    assert done.stdout == '{"result":10}\n'


def test_version_prints_the_version(answerback: Run) -> None:
    assert answerback("--version").stdout == f"answerback {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(answerback: Run, command: str) -> None:
    done = answerback(command, "--help")

    assert done.exit == 0
    target = "" if command in WITHOUT_TARGET else " TARGET"
    assert done.stdout.startswith(f"usage: answerback {command}{target}")


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("cal", "did you mean call?"),
        ("calculator.py", "the command comes first: answerback list calculator.py"),
        ("xyzzy", f"the commands are {', '.join(COMMANDS)}"),
    ],
)
def test_an_unknown_command_gets_a_suggestion(answerback: Run, word: str, advice: str) -> None:
    done = answerback(word)

    assert done.exit == 2
    assert done.stderr == f"error: unknown command {word!r}; {advice}\n"


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (
            ("run", "shop.py"),
            "write: answerback mcp shop.py for stdin and stdout, or answerback serve shop.py for "
            "HTTP",
        ),
        (
            ("dev", "--verbose", "shop.py"),
            "write: answerback serve shop.py --reload, which restarts after each change",
        ),
        (
            ("inspect",),
            "write: answerback list calculator.py to see the tools, or "
            "npx @modelcontextprotocol/inspector answerback mcp calculator.py",
        ),
        (("init",), "write: answerback new my-notes"),
    ],
)
def test_a_command_of_another_framework_is_answered_with_ours(
    answerback: Run, words: tuple[str, ...], advice: str
) -> None:
    done = answerback(*words)

    assert done.exit == 2
    assert done.stderr == f"error: unknown command {words[0]!r}; {advice}\n"


def run_file(file: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        capture_output=True,
        env=os.environ | environ,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_that_runs_its_own_app_has_help_with_its_own_name(tools: Path) -> None:
    done = run_file(tools, "--help")
    listed = run_file(tools, "list")
    wrong = run_file(tools, "lisp")
    version = run_file(tools, "--version")

    assert f"python {tools} call" in done.stdout
    assert "tools 1.2.3: 18 tools" in done.stdout
    assert "add x=INTEGER" in listed.stdout
    assert "did you mean list?" in wrong.stderr
    assert version.stdout.endswith(f"tools 1.2.3 (answerback {__version__})\n")
    assert [done.returncode, listed.returncode, wrong.returncode] == [0, 0, 2]


@pytest.mark.parametrize("arguments", [(), ("call", "secret"), ("list",)])
def test_a_cgi_program_ignores_the_command_line(tools: Path, arguments: tuple[str, ...]) -> None:
    """Contract: RFC 3875 turns the query into arguments, so a client could choose the command."""
    request = {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "POST", "PATH_INFO": "/nothing"}

    done = run_file(tools, *arguments, **request)

    assert done.returncode == 0
    assert done.stdout.endswith("\n\n{}")


@pytest.fixture
def console_script(tools: Path) -> Path:
    """The script that an installer makes of an entry point `mytool = "tools:app.run"`."""
    script = tools.parent / "bin" / "mytool"
    script.parent.mkdir()
    script.write_text(
        f"{FIRST_LINES}import sys\nsys.path.insert(0, {str(tools.parent)!r})\n"
        "from tools import app\nsys.exit(app.run())\n"
    )
    script.chmod(0o755)
    return script


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (("--help",), "usage: mytool COMMAND [options]"),
        (("call", "--help"), "usage: mytool call NAME"),
        (("call", "add", "--help"), "usage: mytool call add x=INTEGER"),
        (("list", "--help"), "usage: mytool list [options]"),
    ],
)
def test_the_help_of_a_console_script_has_the_name_of_the_script(
    console_script: Path, arguments: tuple[str, ...], usage: str
) -> None:
    environ = os.environ | {"PATH": f"{console_script.parent}{os.pathsep}{os.environ['PATH']}"}

    done = subprocess.run(
        ["mytool", *arguments], capture_output=True, env=environ, text=True, timeout=60, check=True
    )

    assert usage in done.stdout
    assert "python" not in done.stdout.replace("calculator.py", "")


def test_the_help_of_a_script_outside_the_path_has_its_path(console_script: Path) -> None:
    done = subprocess.run(
        [str(console_script), "--help"], capture_output=True, text=True, timeout=60, check=True
    )

    assert f"usage: {console_script} COMMAND [options]" in done.stdout


def test_the_help_of_a_module_has_the_name_of_the_module(tools: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools", "--help"],
        capture_output=True,
        cwd=tools.parent,
        text=True,
        timeout=60,
        check=True,
    )

    assert "usage: python -m tools COMMAND [options]" in done.stdout
