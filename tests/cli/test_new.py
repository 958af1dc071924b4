import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerback as package

Run = Callable[..., Any]


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The package under test, which need not be the one that is installed.
    sources = [str(folder / "src"), str(Path(package.__file__).parent.parent)]
    environ = {"PYTHONPATH": os.pathsep.join(sources)}
    # pytest loads our plugin and none of the others that are installed, which take a second.
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "answerback.testing"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["my-notes", "notes2"])
def test_a_new_project_passes_its_own_tests(answerback: Run, tmp_path: Path, name: str) -> None:
    made = answerback("new", name)

    done = run_python(tmp_path / name, "-m", "pytest", "-q", "-p", "no:cacheprovider")

    assert made.exit == 0
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_a_new_project_runs_as_a_module(answerback: Run, tmp_path: Path) -> None:
    answerback("new", "my-notes")

    done = run_python(tmp_path / "my-notes", "-m", "my_notes", "call", "greet", "name=Ada")

    assert done.stdout == '{"result":"Hello, Ada!"}\n'


def test_a_new_project_has_an_entry_point_and_says_what_comes_next(
    answerback: Run, tmp_path: Path
) -> None:
    made = answerback("new", "my-notes")

    project = tomllib.loads((tmp_path / "my-notes" / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"my-notes": "my_notes:app.run"}
    assert {".gitignore", "README.md", "pyproject.toml", "src", "tests"} == {
        path.name for path in (tmp_path / "my-notes").iterdir()
    }
    assert "  cd my-notes\n" in made.stdout
    assert "  my-notes serve --reload\n" in made.stdout


def test_an_empty_folder_is_used_and_any_other_is_left_alone(
    answerback: Run, tmp_path: Path
) -> None:
    (tmp_path / "empty-one").mkdir()
    (tmp_path / "full-one").mkdir()
    (tmp_path / "full-one" / "notes.txt").write_text("kept")
    (tmp_path / "file-one").write_text("kept")

    done = [answerback("new", f"{name}-one") for name in ("empty", "full", "file")]

    assert [each.exit for each in done] == [0, 2, 2]
    assert done[1].stderr.startswith("error: 'full-one' is not empty;")
    assert done[2].stderr.startswith("error: 'file-one' is a file;")
    assert os.listdir(tmp_path / "full-one") == ["notes.txt"]


@pytest.mark.parametrize(
    "name",
    ["", "../notes", "my notes", "1notes", "-notes", "notes-", "json", "class", "answerback", "é"],
)
def test_a_name_that_no_module_can_have_is_refused(
    answerback: Run, tmp_path: Path, name: str
) -> None:
    done = answerback("new", "--", name)

    assert done.exit == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
