"""`python -m tests.console.minified` writes the minified script of the console's page."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.protocol.official_tools import node_command

from answerback.server.console.console_page import MINIFIED, joined_script, script_digest

FILE = ROOT / "src" / "answerback" / "server" / "console" / "parts" / MINIFIED


def minified() -> str:
    """The parts as one minified script, under a line by which the page knows that it is current."""
    joined = joined_script()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.js"
        source.write_text(joined)
        command = node_command(Path(__file__).with_name("minify.mjs"), str(source))
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return f"{script_digest(joined)}\n{done.stdout.strip()}\n"


if __name__ == "__main__":
    FILE.write_text(minified())
    sys.stdout.write(f"{FILE.relative_to(ROOT)}  {FILE.stat().st_size:,} bytes\n")
