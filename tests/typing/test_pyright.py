"""Pyright accepts and rejects the same lines as mypy, which `make check` runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.protocol.official_tools import MODULES, node_command, node_environment

HERE = Path(__file__).parent


@pytest.mark.slow
def test_pyright_accepts_the_uses_of_the_api_and_rejects_the_marked_ones(tmp_path: Path) -> None:
    pyright = MODULES / "pyright" / "index.js"

    found = subprocess.run(
        node_command(pyright, "--pythonpath", sys.executable, "--project", str(HERE)),
        env=node_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert found.stdout.strip() == "0 errors, 0 warnings, 0 informations"
