"""Runs the official conformance suite against our client: `make clientconformance`.

The scenarios `auth/*` are left out: the login of the client is not built yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from tests.mcp.conformance import REQUIREMENTS, Check
from tests.mcp.official_tools import ROOT, SUITE, node_command, node_environment

DRIVER = Path(__file__).parent / "conformance_client.py"
_LISTED = re.compile(r"^  - (?:scenario: )?(\S+)", re.MULTILINE)


def scenarios(requirements: str) -> list[str]:
    """The scenarios for clients, without those of the login."""
    page = (SUITE.parent.parent / "requirements" / f"{requirements}.yaml").read_text()
    scored = page.partition("\nclient:")[2].partition("\nnot_scored:")[0]
    names: list[str] = _LISTED.findall(scored)
    return [name for name in names if not name.startswith("auth/")]


def run_scenario(name: str, requirements: str) -> list[str]:
    """The failures and warnings of a scenario; those of a client that did not run count, too."""
    with tempfile.TemporaryDirectory() as out:
        command = [
            *node_command(SUITE, "client", "--command", f"{sys.executable} {DRIVER}"),
            *("--scenario", name, "--spec-version", requirements, "-o", out),
        ]
        done = subprocess.run(
            command,
            env={**node_environment(Path(out)), "PYTHONPATH": f"{ROOT / 'src'}"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        files = list(Path(out).glob("*/checks.json"))
        checks = [
            check
            for file in files
            for check in msgspec.json.decode(file.read_bytes(), type=list[Check])
        ]
    problems = [
        f"{check.status} {check.id}: {check.error_message}"
        for check in checks
        if check.status in ("FAILURE", "WARNING")
    ]
    if done.returncode and not problems:
        problems = [f"the suite ended with {done.returncode}: {done.stdout[-500:]}"]
    return problems if checks else [f"no checks: {done.stdout[-500:]}{done.stderr[-500:]}"]


def main() -> int:
    failed = False
    for requirements in REQUIREMENTS:
        for name in [*scenarios(requirements), "json-schema-2020-12-preservation"]:
            problems = run_scenario(name, requirements)
            failed = failed or bool(problems)
            sys.stdout.write(f"{requirements} {name}: {'; '.join(problems) or 'passed'}\n")
            sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
