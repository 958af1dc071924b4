"""The page as a file: its size, and the library in it."""

from __future__ import annotations

import json
from gzip import decompress

from tests.protocol.official_tools import MODULES, ROOT

from answerback.server.console.console_page import SCRIPTS, STYLES, console_page

PARTS = ROOT / "src" / "answerback" / "server" / "console" / "parts"


def test_the_whole_page_is_sent_in_at_most_150_kb() -> None:
    page = console_page()

    assert len(page.compressed) <= 150_000
    assert decompress(page.compressed) == page.body


def test_comments_are_not_sent() -> None:
    lines = console_page().body.decode().splitlines()

    assert [line for line in lines if line.lstrip().startswith("//")] == []


def test_every_part_is_in_the_page() -> None:
    listed = {*SCRIPTS, *STYLES, "preact_htm.js", "shell.html"}

    assert {path.name for path in PARTS.iterdir()} == listed


def test_preact_with_htm_is_the_file_of_the_npm_package() -> None:
    package = MODULES / "htm"
    pinned = json.loads((ROOT / "package.json").read_bytes())["devDependencies"]["htm"]

    assert json.loads((package / "package.json").read_bytes())["version"] == pinned
    published = (package / "preact" / "standalone.module.js").read_bytes()
    assert (PARTS / "preact_htm.js").read_bytes() == published
