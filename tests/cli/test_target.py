from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

ONE = """
from answerback import App
app = App("one")

@app.tool
def name() -> str:
    return __name__
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(ONE)
    (tmp_path / "json.py").write_text(ONE)
    (tmp_path / "one-more.v2.py").write_text(ONE)
    (tmp_path / "without_a_suffix").write_text(ONE)
    (tmp_path / "two.py").write_text(ONE + "other = App('other')\nword = 'x'\n")
    (tmp_path / "folder").mkdir()
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
        ("one", "one"),
        ("two.py:app", "two"),
        ("json.py", "json_tools"),
        ("one-more.v2.py", "one-more_v2"),
        ("without_a_suffix", "without_a_suffix"),
        ("package/sibling.py", "sibling"),
        ("package.inner", "package.inner"),
        ("package.inner:app", "package.inner"),
        ("package.inner:Box.app", "package.inner"),
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
        ("nope", "there is no file or module 'nope'"),
        ("package.nope", "there is no file or module 'package.nope'"),
        (".", "'.' is a folder; name a file in it"),
        ("folder", "'folder' is a folder; name a file in it"),
        ("./folder", "'./folder' is a folder; name a file in it"),
        ("..one", "'..one' is not a file or a module name"),
        ("package.beside", "holds none"),
        ("two.py", "app, other"),
        ("two.py:nope", "there is no 'nope' in two.py; its Apps are app, other"),
        ("package.beside:app", "there is no 'app' in package.beside; it has no App"),
        ("two.py:word", "two.py:word is a str, not an App"),
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
    assert done.stderr == "error: ending.py called sys.exit() while it was loaded\n"


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
