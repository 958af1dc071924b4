"""The official conformance suite and Inspector, which `make setup` installs."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MODULES = ROOT / "node_modules"
NODE = MODULES / ".bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"

FOR_CLIENTS = ROOT / "tests" / "apps" / "for_clients.py"
CONFORMANCE = ROOT / "examples" / "conformance.py"


def node_command(script: Path, *arguments: str) -> list[str]:
    """The command that runs *script* with the pinned Node; the system's may be too old."""
    assert NODE.exists(), "the npm packages are not installed; run: make setup"
    return [str(NODE), str(script), *arguments]


def node_environment(home: Path) -> dict[str, str]:
    """An environment with the pinned Node first on the path and a home that can be written to."""
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "NO_COLOR": "1"}
