"""The official TypeScript client, 2.4.0, in both eras, over stdio and HTTP."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from tests.mcp.judges import JUDGED, node_command, node_environment
from tests.mcp.seen import Era, Seen, expected

CLIENT = Path(__file__).parent / "client.mjs"


@pytest.mark.parametrize("wire", ["stdio", "http"])
@pytest.mark.parametrize(
    ("mode", "era"), [("legacy", "stateful"), ("auto", "stateless"), ("2026-07-28", "stateless")]
)
def test_the_typescript_client_reads_everything(
    judged_url: str, tmp_path: Path, wire: Literal["stdio", "http"], mode: str, era: Era
) -> None:
    target = [judged_url] if wire == "http" else [sys.executable, str(JUDGED), "mcp"]

    done = subprocess.run(
        node_command(CLIENT, mode, *target),
        env=node_environment(tmp_path),
        capture_output=True,
        timeout=60,
    )

    assert done.stderr.decode() == ""
    assert msgspec.json.decode(done.stdout, type=Seen) == expected(era)
