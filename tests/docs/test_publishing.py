"""docs/guides/publishing.md: a new project is built and run; `install` writes its snippets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import answerback

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "publishing.md").read_text()
PACKAGE = Path(answerback.__file__).parent.parent
NO_REGISTRY = ("Could not find a version", "Connection", "Temporary failure", "Network")


class Published(NamedTuple):
    """The program of the wheel, and the environment that finds its package."""

    script: Path
    environ: dict[str, str]

    def run(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [self.script.name, *arguments],
            input=stdin,
            capture_output=True,
            env=self.environ,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def run_python(folder: Path, *arguments: str) -> None:
    environ = os.environ | {"PYTHONPATH": str(PACKAGE), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=180,
    )
    if done.returncode and any(text in done.stderr for text in NO_REGISTRY):
        pytest.skip("the build tool hatchling cannot be fetched here")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """The wheel of a new project, installed where `uvx` would install it."""
    folder = tmp_path_factory.mktemp("publishing")
    run_python(folder, "answerback", "new", "my-notes")
    run_python(folder, "pip", "wheel", "-q", "--no-deps", "-w", "dist", "./my-notes")
    (wheel,) = (folder / "dist").glob("*.whl")
    place = folder / "uv" / "archive-v0" / "x"
    run_python(folder, "pip", "install", "-q", "--no-deps", "--target", str(place), str(wheel))
    paths = {
        "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{place}{os.pathsep}{PACKAGE}",
    }
    return Published(place / "bin" / "my-notes", os.environ | paths)


def test_the_wheel_of_a_new_project_has_a_program_with_its_own_name(published: Published) -> None:
    called = published.run("call", "greet", "name=Ada")
    helped = published.run("call", "greet", "--help")
    version = published.run("--version")

    assert called == '{"result":"Hello, Ada!"}\n'
    assert helped.startswith("usage: my-notes call greet name=TEXT")
    assert version.startswith("my-notes 0.1.0 (answerback ")


def test_the_program_of_the_wheel_speaks_mcp(published: Published) -> None:
    answer = published.run("mcp", stdin='{"jsonrpc":"2.0","id":1,"method":"ping"}\n')

    assert json.loads(answer) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_the_snippets_of_the_page_are_those_that_install_writes_under_uvx(
    published: Published,
) -> None:
    shown: list[Any] = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.S)]

    printed = {
        host: json.loads(published.run("install", host, "--print"))
        for host in ("claude", "cursor", "claude-code", "vscode")
    }

    assert [printed["claude"], printed["claude-code"], printed["vscode"]] == shown
    assert printed["cursor"] == shown[0]


def test_the_lines_of_the_page_are_those_of_a_new_project(tmp_path: Path) -> None:
    run_python(tmp_path, "answerback", "new", "my-notes")
    written = (tmp_path / "my-notes" / "pyproject.toml").read_text()
    (lines,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)

    missing = [line for line in lines.splitlines() if line not in written.splitlines()]

    assert missing == []
