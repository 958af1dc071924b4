"""The official judges that `make setup` brings, and how each is started."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MODULES = ROOT / "node_modules"
NODE = MODULES / ".bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"

JUDGED = ROOT / "tests" / "apps" / "judged.py"
CONFORMANCE = ROOT / "examples" / "conformance.py"


def node_command(script: Path, *arguments: str) -> list[str]:
    """Run *script* with the pinned Node; the one on the machine may be too old for it."""
    assert NODE.exists(), "the npm packages are not here; run: make setup"
    return [str(NODE), str(script), *arguments]


def node_environment(home: Path) -> dict[str, str]:
    """The pinned Node first on the path, and a home that may be written to."""
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "NO_COLOR": "1"}
