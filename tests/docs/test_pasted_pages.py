"""Does what the README, the first page of docs/ and the tutorial tell a newcomer to do.

From an empty folder, in order:

- The paragraph before a ```python block says where it goes: "Save this as `notes.py`", or "Add this
  to `notes.py`, above the line `if __name__ …`". It is written there, and nothing else runs it.
- Every command of every ```console block runs. The lines under a command are its expected output,
  as on the other pages (test_pages.py); in a block without output each command must succeed.

`pip install` finds the packages that the tests use, and downloads nothing.
"""

from __future__ import annotations

import site
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.page_runner import PASTED, ROOT, Shell, blocks, matches, needs_curl, paste, steps

import answerback


@pytest.fixture
def shell(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with ExitStack() as stack:
        shell = Shell(tmp_path, tmp_path_factory.mktemp("shell") / "state", stack)
        package = str(Path(answerback.__file__).parent.parent)
        shell.export("PYTHONPATH", ":".join([package, *site.getsitepackages()]))
        shell.export("PIP_NO_INDEX", "1")
        yield shell


@pytest.mark.parametrize("page", PASTED, ids=lambda page: page.stem)
def test_a_newcomer_who_pastes_the_page_sees_what_it_shows(
    page: Path, tmp_path: Path, shell: Shell
) -> None:
    if needs_curl(page):
        pytest.skip("curl is not installed")
    for block in blocks(page):
        if block.kind == "python":
            paste(block, tmp_path)
        elif block.kind == "console":
            shows = any(step.output for step in steps(block.text))
            for command, output in steps(block.text):
                seen = shell.run(command)
                where = f"{page.name}:{block.line} $ {command} prints\n{seen}"
                assert matches(output, seen) if shows else shell.status == 0, where


def test_the_readme_is_short() -> None:
    """Contract: a newcomer reads it to the end; the rest is in docs/."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_a_wildcard_matches_text_in_a_line_or_on_its_own_any_lines() -> None:
    assert matches("a … c\n…\nz", "a b c\nd\ne\nz\n")
    assert matches("a\n…\nz", "a\nz\n")
    assert not matches("a\n…\nz", "a\nb\n")
    assert not matches("a …", "b c\n")
