"""Runs the examples on the pages and compares their output. On each page, from top to bottom:

- ```python blocks run in one namespace, and may use await. A block that begins with `# name.py`
  is also written to that file; one that begins with `# test_name.py` is only written.
- A ```text block right after a ```python block is its expected output.
- ```console blocks run on a terminal, in a folder with those files and a copy of `examples/`.
  The lines under a `$ command` are its expected output. `…` stands for any text in a line, and
  on a line of its own for any number of lines. Durations in ms are not compared. A command that
  serves runs on another port, until the end of the page. A block without output is not run.

`DATABASE_URL` names an empty PostgreSQL database on a page that mentions it.

The README and the tutorial's steps are not among them: test_pasted_pages.py pastes those. Of
the page about agent frameworks, only the server runs here; `make clients` runs the whole page, in
an environment with the frameworks.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.page_runner import (
    FRAMEWORKS,
    ROOT,
    Python,
    Shell,
    blocks,
    matches,
    needs_curl,
    steps,
)

RECIPES = sorted((ROOT / "docs" / "guides" / "recipes").glob("*.md"))
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*/*.md")), *RECIPES]
FRAMEWORK_IMPORT = re.compile(r"^from (langchain_mcp_adapters|pydantic_ai|agents)\b", re.MULTILINE)


@pytest.fixture
def environ(
    page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    if "DATABASE_URL" in page.read_text():
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("state_url"))
    return monkeypatch


@pytest.fixture
def python(page: Path, tmp_path: Path, environ: pytest.MonkeyPatch) -> Iterator[Python]:
    with asyncio.Runner() as runner:
        python = Python(page, tmp_path, runner)
        environ.setitem(sys.modules, python.module.__name__, python.module)
        environ.chdir(tmp_path)
        yield python


@pytest.fixture
def shell(
    environ: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    with ExitStack() as stack:
        yield Shell(tmp_path, tmp_path_factory.mktemp("shell") / "state", stack)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_what_it_shows(
    page: Path, python: Python, shell: Shell
) -> None:
    if needs_curl(page):
        pytest.skip("curl with --json is not installed; install curl 7.82 or newer")
    printed = ""
    for block in blocks(page):
        if page == FRAMEWORKS and FRAMEWORK_IMPORT.search(block.text):
            break
        where = f"{page.name}:{block.line}"
        if block.kind == "python":
            printed = python.run(block)
        elif block.kind == "text" and block.after == "python":
            assert matches(block.text, printed), f"{where} prints\n{printed}"
        elif block.kind == "console" and any(step.output for step in steps(block.text)):
            for command, output in steps(block.text):
                seen = shell.run(command)
                assert matches(output, seen), f"{where} $ {command} prints\n{seen}"
