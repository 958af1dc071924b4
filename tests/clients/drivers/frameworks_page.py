"""Runs the examples of the page about agent frameworks.

Ends with exit status 1, and a line for each fault, if one does not print what the page shows.
"""

import asyncio
import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.page_runner import FRAMEWORKS, ROOT, Python, blocks, matches

# The frameworks start the server of the page without PYTHONPATH.
Path(sysconfig.get_path("purelib"), "answerback.pth").write_text(f"{ROOT / 'src'}\n")

faults, printed = [], ""
with asyncio.Runner() as runner, TemporaryDirectory() as folder:
    os.chdir(folder)
    python = Python(FRAMEWORKS, Path(folder), runner)
    sys.modules[python.module.__name__] = python.module
    for block in blocks(FRAMEWORKS):
        if block.kind == "python":
            printed = python.run(block)
        elif block.kind == "text" and not matches(block.text, printed):
            faults.append(f"{FRAMEWORKS.name}:{block.line} prints {printed!r}\n")
sys.stdout.writelines(faults)
sys.exit(1 if faults else 0)
