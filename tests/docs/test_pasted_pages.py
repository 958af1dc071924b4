"""Does what the README, the first page of docs/ and the tutorial tell a newcomer to do.

From an empty folder, in order:

- The paragraph before a block of code says where it goes: "Save this as `notes.py`", "Add this to
  `notes.py`, above the line `if __name__ …`", or "Replace the function `create` in `notes.py` with
  this". It is written there, and nothing else runs it.
- Every command of every ```console block runs. The lines under a command are its expected output,
  as on the other pages (test_pages.py); in a block without output each command must succeed.
- A command that serves runs until a paragraph says "Stop the server", on a later page too. A
  second server before that is an error, because its port would be taken.
- `YOUR-KEY`, `YOUR-DIGEST` and `YOUR-TASK` stand for what an earlier command printed.

The new environment has the packages that the tests use, so that `pip install` downloads nothing.
"""

from __future__ import annotations

import re
import site
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.page_runner import (
    PASTED,
    ROOT,
    TUTORIAL,
    TUTORIAL_STEPS,
    Block,
    Shell,
    blocks,
    is_pasted,
    matches,
    needs_curl,
    paste,
    serves,
    steps,
)

import answerback


@pytest.fixture
def shell(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with ExitStack() as stack:
        shell = Shell(tmp_path, tmp_path_factory.mktemp("shell") / "state", stack)
        shell.export("PIP_NO_INDEX", "1")
        yield shell


@pytest.mark.parametrize("name", PASTED)
def test_a_newcomer_who_pastes_the_pages_sees_what_they_show(
    name: str, tmp_path: Path, shell: Shell
) -> None:
    if any(map(needs_curl, PASTED[name])):
        pytest.skip("curl with --json is not installed; install curl 7.82 or newer")
    for page in PASTED[name]:
        for block in blocks(page):
            if "Stop the server" in block.before:
                shell.stop_server()
            if block.kind == "console":
                assert complaint_about(block, shell) == "", f"{page.name}:{block.line}"
            elif is_pasted(block):
                paste(block._replace(text=shell.fill_in(block.text)), tmp_path)


def complaint_about(block: Block, shell: Shell) -> str:
    """Run the block's commands; return the first that does not do what the page shows, or ""."""
    shows = any(step.output for step in steps(block.text))
    for command, output in steps(block.text):
        if serves(command) and shell.is_serving:
            return f"$ {command}: another server still runs"
        seen = shell.run(command, output)
        if command == "python3 -m venv .venv":
            add_packages(shell.folder / ".venv")
        if not (matches(output, seen) if shows else shell.status == 0):
            return f"$ {command} prints\n{seen}"
    return ""


def add_packages(environment: Path) -> None:
    """Let the environment find the tests' packages, also in programs that hosts start."""
    folders = [str(Path(answerback.__file__).parent.parent), *site.getsitepackages()]
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text("\n".join(folders))


def test_the_tutorials_list_has_all_its_steps_and_each_links_to_its_neighbours() -> None:
    assert sorted(TUTORIAL_STEPS) == sorted((TUTORIAL.parent / "tutorial").glob("*.md"))
    for before, page, after in zip(
        [None, *TUTORIAL_STEPS], TUTORIAL_STEPS, [*TUTORIAL_STEPS[1:], None], strict=False
    ):
        neighbours = [each.name for each in (before, after) if each is not None]
        last_line = page.read_text().splitlines()[-1]
        assert "(../tutorial.md)" in last_line, page.name
        assert re.findall(r"\]\(([\w-]+\.md)\)", last_line) == neighbours, page.name


@pytest.mark.parametrize("page", TUTORIAL_STEPS, ids=lambda page: page.stem)
def test_every_step_of_the_tutorial_ends_with_something_to_see(page: Path) -> None:
    shown = [block for block in blocks(page) if block.kind == "console"]

    assert any(step.output for step in steps(shown[-1].text))


def test_the_readme_is_short() -> None:
    """Contract: a newcomer reads it to the end; the rest is in docs/."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_a_wildcard_matches_text_in_a_line_or_on_its_own_any_lines() -> None:
    assert matches("a … c\n…\nz", "a b c\nd\ne\nz\n")
    assert matches("a\n…\nz", "a\nz\n")
    assert not matches("a\n…\nz", "a\nb\n")
    assert not matches("a …", "b c\n")
