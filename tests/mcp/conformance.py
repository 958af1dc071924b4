"""Runs the official conformance suite, and reads what it found.

Its exit status looks at the scored scenarios only, and at failures only; so the files that it
writes are read here. The tasks extension is not served: what `tasks-*` finds is not counted.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
from tests.conftest import serving
from tests.mcp.judges import CONFORMANCE, SUITE, node_command, node_environment

REQUIREMENTS = ("2025-11-25", "2026-07-28")
BAD = frozenset({"FAILURE", "WARNING", "SKIPPED"})
_DIRECTORY = re.compile(r"server-(?P<scenario>.+?)-\d{4}-\d\d-\d\dT.*")


class Check(msgspec.Struct, rename="camel"):
    id: str
    status: str
    error_message: str | None = None


class Verdict(msgspec.Struct):
    """What one set of requirements came to, scenario by scenario."""

    scenarios: dict[str, list[Check]]
    said: str

    @property
    def checks(self) -> list[tuple[str, Check]]:
        return [
            (scenario, check)
            for scenario, checks in self.scenarios.items()
            if not scenario.startswith("tasks-")
            for check in checks
        ]

    @property
    def counts(self) -> Counter[str]:
        return Counter(check.status for _, check in self.checks)

    @property
    def complaints(self) -> list[str]:
        return [
            f"{check.status} {scenario}: {check.id}: {check.error_message}"
            for scenario, check in self.checks
            if check.status in BAD
        ]

    def status_of(self, id: str) -> set[str]:
        return {check.status for _, check in self.checks if check.id == id}


def judge(url: str, requirements: str) -> Verdict:
    """Run one frozen set of requirements against the server at *url*."""
    with tempfile.TemporaryDirectory() as out:
        command = node_command(SUITE, "server", "--url", url, "--requirements", requirements)
        done = subprocess.run(
            [*command, "-o", out],
            env=node_environment(Path(out)),
            capture_output=True,
            text=True,
            timeout=120,
        )
        found = {
            name["scenario"]: msgspec.json.decode(file.read_bytes(), type=list[Check])
            for file in sorted(Path(out).glob("*/checks.json"))
            if (name := _DIRECTORY.fullmatch(file.parent.name)) is not None
        }
    assert found, f"the suite did not run: {done.stdout}{done.stderr}"
    return Verdict(found, done.stdout)


def main() -> int:
    failed = False
    with serving(CONFORMANCE) as server:
        for requirements in REQUIREMENTS:
            verdict = judge(f"{server.url}/mcp", requirements)
            counts = verdict.counts
            failed = failed or counts["FAILURE"] > 0
            tally = ", ".join(f"{count} {status.lower()}" for status, count in counts.items())
            sys.stdout.write(f"{requirements}: {len(verdict.scenarios)} scenarios: {tally}\n")
            sys.stdout.writelines(f"  {complaint}\n" for complaint in verdict.complaints)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
