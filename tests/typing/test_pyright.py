"""Pyright accepts and rejects the same lines as mypy, which `make check` runs.

Both accept what a newcomer pastes from the README and the tutorial, and the project that
`answerback new` writes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.page_runner import PASTED, blocks, paste
from tests.protocol.official_tools import MODULES, node_command, node_environment

import answerback

HERE = Path(__file__).parent
SOURCES = str(Path(answerback.__file__).parent.parent)


def pyright(project: Path, home: Path) -> str:
    """Return what pyright prints about the files of a pyrightconfig.json."""
    script = MODULES / "pyright" / "index.js"
    return subprocess.run(
        node_command(script, "--pythonpath", sys.executable, "--project", str(project)),
        env=node_environment(home),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    ).stdout.strip()


@pytest.mark.slow
def test_pyright_accepts_the_uses_of_the_api_and_rejects_the_marked_ones(tmp_path: Path) -> None:
    assert pyright(HERE, tmp_path) == "0 errors, 0 warnings, 0 informations"


@pytest.fixture
def first_hour(tmp_path: Path) -> Path:
    """A folder with the files of the README, of the tutorial and of a new project."""
    for name, pages in PASTED.items():
        folder = tmp_path / name
        folder.mkdir()
        for block in (block for page in pages for block in blocks(page)):
            if block.kind == "python":
                paste(block, folder)
    command = [sys.executable, "-m", "answerback", "new", "my-notes"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=True)
    return tmp_path


@pytest.mark.slow
def test_pyright_accepts_the_files_of_the_first_hour(first_hour: Path) -> None:
    paths = [SOURCES, *PASTED, "my-notes/src"]
    settings = {"include": ["."], "extraPaths": paths, "pythonVersion": "3.11"}
    (first_hour / "pyrightconfig.json").write_text(json.dumps(settings))

    assert pyright(first_hour, first_hour) == "0 errors, 0 warnings, 0 informations"


@pytest.mark.slow
def test_mypy_accepts_the_files_of_the_first_hour(first_hour: Path) -> None:
    # One cache for all parts: mypy then reads our own source once.
    cache = f"--cache-dir={first_hour / 'cache'}"
    command = [sys.executable, "-m", "mypy", "--config-file=", cache, "--check-untyped-defs", "."]
    for part in (*PASTED, "my-notes"):
        done = subprocess.run(
            command, cwd=first_hour / part, capture_output=True, text=True, timeout=600, check=False
        )

        assert done.returncode == 0, f"{part}: {done.stdout}"
