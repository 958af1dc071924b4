"""The newcomer's test of docs/guides/console.md: every step is on the screen before it is taken."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server
from tests.docs.page_runner import ROOT, blocks
from tests.widgets.browser_driver import Browser

from answerback import connect


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, in which `python` is the one of the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    return tmp_path


@pytest.fixture
def served(home: Path) -> Iterator[Server]:
    """The first block of the README, saved and served as the page says."""
    readme = blocks(ROOT / "README.md")
    assert "Save this as `calculator.py`" in readme[0].before
    (home / "calculator.py").write_text(readme[0].text)
    assert any("$ python calculator.py serve\n" in block.text for block in readme)
    # On a free port, because another test may serve on 8000.
    process = subprocess.Popen(
        ["python", "calculator.py", "serve", "--port", "0"], cwd=home, stderr=subprocess.PIPE
    )
    try:
        yield Server(process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def answer_yes(command: str, folder: Path) -> str:
    """Run a command on a terminal, and type `y` at its question; return what it prints."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            shlex.split(command),
            cwd=folder,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            os.write(ours, b"y\n")
            printed, _ = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 0, printed
    return str(printed)


def test_from_the_readme_to_a_call_in_the_browser_and_by_a_host(
    browser: Browser, served: Server, home: Path
) -> None:
    printed = re.search(r"console +GET +(http\S+) in a browser", served.announced)
    assert printed is not None, served.announced
    browser.open(printed[1])
    browser.until("document.querySelector('nav').innerText.includes('Add two numbers.')")
    browser.fill("form [data-path=x]", "7")
    browser.fill("form [data-path=y]", "3")
    browser.click(".pill:has-text('Every wire') input")
    browser.click("role=button[name='Call']")
    browser.until("document.querySelector('.verdict')?.innerText.includes('All 3 wires')")
    replies = browser.run("[...document.querySelectorAll('.wire .json')].map((e) => e.innerText)")
    assert all('"result": 10' in reply for reply in replies)

    browser.click("header [data-tab=start]")
    browser.click("[role=tab][data-tab=Cursor]")
    command = browser.run("document.querySelector('.steps pre').innerText")
    assert "switch the server on" in browser.run(
        "document.querySelector('.steps').innerText.toLowerCase()"
    )
    assert command == "python calculator.py install cursor"

    written = answer_yes(command, home)
    assert "Next: switch the server on in Cursor's settings." in written
    # As Cursor does: it starts the servers of its file, and calls a tool.
    with connect(home / ".cursor" / "mcp.json") as host:
        names = [tool.name for tool in host.tools()]
        assert [host.call(name, x=7, y=3).data for name in names] == [10]
