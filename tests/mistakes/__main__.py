"""`python -m tests.mistakes` writes today's messages into mistakes.md. Read the difference."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.mistakes.running import PAGE, mistakes, said_by, section

if __name__ == "__main__":
    parts = [PAGE.read_text().partition("\n## ")[0].rstrip()]
    for mistake in mistakes():
        with tempfile.TemporaryDirectory() as folder:
            parts.append(section(mistake, said_by(mistake, Path(folder))))
    PAGE.write_text("\n\n".join(parts) + "\n")
