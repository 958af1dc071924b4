import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serving import FIRST_LINES

Run = Callable[..., Any]

SERVER = """\
import sys
from answerback import App
app = App("started")

@app.tool
def name() -> str:
    return f"{__name__} {len(sys.argv)}"

app.run(["mcp"])
"""

ONE = """
from answerback import App
app = App("one")

@app.tool
def name() -> str:
    return __name__
"""
MADE = """
from answerback import App

def make(name="made"):
    app = App(name)

    @app.tool
    def name() -> str:
        return __name__

    app.run()
    return app

def forgets():
    make().run()

def takes(name):
    return App(name)

async def later():
    return make()

def fails():
    raise OSError("no settings")
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(ONE)
    (tmp_path / "twice_named.py").write_text(ONE + "again = app\n")
    (tmp_path / "json.py").write_text(ONE)
    (tmp_path / "one-more.v2.py").write_text(ONE)
    (tmp_path / "without_a_suffix").write_text(ONE)
    (tmp_path / "two.py").write_text(ONE + "other = App('other')\nword = 'x'\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "made.py").write_text(MADE)
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text(
        "from . import beside\n" + ONE + "class Box:\n    app = app\n"
    )
    (package / "beside.py").write_text("")
    (package / "sibling.py").write_text("import beside\n" + ONE)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("one.py", "one"),
        ("./one.py", "one"),
        ("one.py:app", "one"),
        ("twice_named.py", "twice_named"),
        ("one", "one"),
        ("two.py:app", "two"),
        ("json.py", "json_tools"),
        ("one-more.v2.py", "one-more_v2"),
        ("without_a_suffix:app", "without_a_suffix"),
        ("package/sibling.py", "sibling"),
        ("package.inner", "package.inner"),
        ("package.inner:app", "package.inner"),
        ("package.inner:Box.app", "package.inner"),
        ("made.py:make", "made"),
        ("made:make", "made"),
    ],
)
def test_an_app_is_found_by_its_target(answerback: Run, target: str, name: str) -> None:
    done = answerback("call", target, "name")

    assert done.stdout == f'{{"result":"{name}"}}\n'


def test_a_target_can_be_an_absolute_path(answerback: Run, files: Path) -> None:
    done = answerback("call", f"{files}/one.py:app", "name")

    assert done.exit == 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nope.py", "there is no file 'nope.py'"),
        ("nowhere/one.py", "there is no file 'nowhere/one.py'"),
        ("nope", "there is no file, module or command 'nope'; write "),
        ("package.nope", "there is no file, module or command 'package.nope'; write "),
        ("nowhere/server", "there is no file, module or command 'nowhere/server'; write "),
        ("127.0.0.1:8000/mcp", "'127.0.0.1:8000/mcp'; write http://127.0.0.1:8000/mcp\n"),
        ("tools.example.com/mcp", "write http://tools.example.com/mcp\n"),
        ("nope:app", "there is no file or module 'nope'"),
        ("without_a_suffix", "cannot be executed; write without_a_suffix:app "),
        ("'nope", "No closing quotation"),
        (".", "'.' is a folder; name a file in it"),
        ("folder", "'folder' is a folder; name a file in it"),
        ("./folder", "'./folder' is a folder; name a file in it"),
        ("..one", "there is no file, module or command '..one'"),
        ("package.beside", "has none"),
        ("two.py", "app, other"),
        ("two.py:nope", "there is no 'nope' in two.py; its Apps are app, other"),
        ("package.beside:app", "there is no 'app' in package.beside; it has no App"),
        ("two.py:word", "two.py:word is a str, not an App"),
        ("./one:app", "there is no file './one'; did you mean './one.py'?"),
        ("package/inner", "there is no file, module or command 'package/inner'; did you mean "),
        ("made.py", "has none; if a function returns it, name the function: made.py:make"),
        ("made.py:forgets", "made.py:forgets() returned NoneType, not an App; make it return "),
        ("made.py:takes", "made.py:takes() should be callable without arguments: missing a "),
        ("made.py:later", "made.py:later() is async; write a plain def that returns the App"),
    ],
)
def test_a_target_without_an_app_is_an_error_in_one_line(
    answerback: Run, target: str, words: str
) -> None:
    done = answerback("list", target)

    assert done.exit == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError"),
        ("from answerback import App\n@App('a').tool\ndef f(x): ...", "TypeError"),
    ],
)
@pytest.mark.parametrize("target", ["faulty.py", "faulty"])
def test_an_error_in_the_authors_file_has_a_traceback_without_internal_frames(
    answerback: Run, files: Path, source: str, problem: str, target: str
) -> None:
    (files / "faulty.py").write_text(source)

    done = answerback("list", target)

    assert done.exit == 2
    assert "faulty.py" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"error: {target} cannot be loaded: {problem}")
    assert "src/answerback" not in done.stderr
    assert "importlib" not in done.stderr


def test_a_function_that_fails_to_make_the_app_has_a_traceback(answerback: Run) -> None:
    done = answerback("list", "made.py:fails")

    assert done.exit == 2
    assert "in fails" in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "error: made.py:fails cannot be loaded: OSError: no settings"
    )


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("package/inner.py", "name its module: package.inner\n"),
        ("package/deep/inner.py:app", "name its module: package.deep.inner\n"),
        ("../elsewhere/inner.py", "name its module: elsewhere.inner, in the folder "),
    ],
)
def test_a_file_with_relative_imports_is_told_the_name_of_its_module(
    answerback: Run, files: Path, target: str, hint: str
) -> None:
    inner = (files / "package" / "inner.py").read_text()
    (files / "package" / "deep").mkdir()
    (files / "package" / "deep" / "__init__.py").write_text("")
    (files / "package" / "deep" / "inner.py").write_text(inner)
    elsewhere = files.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "inner.py").write_text(inner)

    done = answerback("list", target)

    assert done.exit == 2
    assert hint in done.stderr


def test_a_file_that_calls_run_at_import_is_only_loaded(answerback: Run, files: Path) -> None:
    (files / "unguarded.py").write_text(ONE + "app.run()")
    request = {"GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "POST", "PATH_INFO": "/name"}

    called = answerback("call", "unguarded.py", "name")
    asked = answerback("cgi", "unguarded.py", **request)

    assert (called.stdout, called.stderr) == ('{"result":"unguarded"}\n', "")
    assert (asked.stdout[-22:], asked.stderr) == ('{"result":"unguarded"}', "")


def test_a_file_that_calls_sys_exit_at_import_is_an_error_in_one_line(
    answerback: Run, files: Path
) -> None:
    (files / "ending.py").write_text("raise SystemExit(0)")

    done = answerback("list", "ending.py")

    assert done.exit == 2
    assert done.stderr == "error: ending.py called sys.exit() while being loaded\n"


def test_a_spawned_process_can_import_the_functions_of_the_target(
    answerback: Run, files: Path
) -> None:
    (files / "spread.py").write_text(
        "import multiprocessing\n" + ONE + "def double(x: int) -> int:\n    return 2 * x\n"
        "@app.tool\ndef doubled(x: int) -> list[int]:\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        return pool.map(double, [x])\n"
    )

    done = answerback("call", "spread.py", "doubled", "x=4")

    assert done.stdout == '{"result":[8]}\n'


def executable(path: Path) -> Path:
    path.write_text(f"{FIRST_LINES}{SERVER}")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "target",
    [
        "serve-it",
        "serve-it ",
        "./serve-it",
        "one-tool",
        "folder",
        f"{shlex.quote(sys.executable)} serve-it",
        f"{shlex.quote(sys.executable)} tool.py",
    ],
)
def test_a_command_is_started_as_a_child_process(answerback: Run, files: Path, target: str) -> None:
    """A Python program too: the name of its module says that it was not imported."""
    executable(files / "serve-it")
    executable(files / "tool.py")
    bin = files / "bin"
    bin.mkdir()
    executable(bin / "one-tool")
    executable(bin / "folder")
    path = f"{bin}{os.pathsep}{os.environ['PATH']}"

    called = answerback("call", target, "name", PATH=path)
    listed = answerback("list", target, PATH=path)

    assert (called.stdout, called.stderr) == ('{"result":"__main__ 1"}\n', "")
    assert listed.stdout == "name\n"


def test_a_module_that_can_be_found_comes_before_a_command(answerback: Run, files: Path) -> None:
    executable(files / "bin-one").rename(files / "package" / "one")

    done = answerback("call", "one", "name", PATH=f"{files / 'package'}")

    assert done.stdout == '{"result":"one"}\n'


def test_looking_for_a_module_runs_nothing(answerback: Run, files: Path) -> None:
    (files / "package" / "__init__.py").write_text("raise SystemExit('imported')")

    done = answerback("list", "package.nope")

    assert done.stderr.startswith("error: there is no file, module or command 'package.nope'")


@pytest.mark.parametrize("target", ["package.beside", "package/beside.py"])
def test_a_module_without_an_app_is_told_how_to_start_other_servers(
    answerback: Run, target: str
) -> None:
    done = answerback("list", target)

    assert done.exit == 2
    assert "call and list accept other servers as a command: " in done.stderr
    assert "'python" in done.stderr


@pytest.mark.parametrize("words", [(), ("x=1",)])
def test_a_command_is_not_started_by_a_call_without_a_tools_name(
    answerback: Run, files: Path, words: tuple[str, ...]
) -> None:
    """A tool's name in place of the target may be the name of any program, such as `reboot`."""
    program = files / "reboot"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)

    done = answerback("call", "reboot", *words, PATH=str(files))

    assert done.exit == 2
    assert "`answerback list reboot` shows the tools" in done.stderr
    assert not (files / "started").exists()
