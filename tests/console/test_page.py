"""The parts of the page, and the library in it."""

from __future__ import annotations

import json
from gzip import compress, decompress

from tests.console.minified import FILE, minified
from tests.protocol.official_tools import MODULES, ROOT

from answerback.server.console.console_page import MINIFIED, SCRIPTS, STYLES, console_page

PARTS = ROOT / "src" / "answerback" / "server" / "console" / "parts"


def test_the_whole_page_has_at_most_150_kb() -> None:
    page = console_page()

    assert len(page.body) <= 150_000, "run `make console`"
    assert decompress(page.compressed) == page.body


def test_comments_are_not_sent() -> None:
    lines = console_page().body.decode().splitlines()

    assert [line for line in lines if line.lstrip().startswith("//")] == []


def test_every_part_is_in_the_page() -> None:
    listed = {*SCRIPTS, *STYLES, "preact_htm.js", "shell.html", MINIFIED}

    assert {path.name for path in PARTS.iterdir()} == listed


def test_preact_with_htm_is_the_file_of_the_npm_package() -> None:
    package = MODULES / "htm"
    pinned = json.loads((ROOT / "package.json").read_bytes())["devDependencies"]["htm"]

    assert json.loads((package / "package.json").read_bytes())["version"] == pinned
    published = (package / "preact" / "standalone.module.js").read_bytes()
    assert (PARTS / "preact_htm.js").read_bytes() == published


def test_the_minified_script_is_that_of_the_parts() -> None:
    assert FILE.read_text() == minified(), "run `make console`"


def test_the_console_adds_less_than_250_kb_to_the_wheel() -> None:
    files = [path for path in PARTS.parent.rglob("*") if path.suffix in {".py", ".js", ".css"}]

    assert sum(len(compress(path.read_bytes())) for path in files) < 250_000
