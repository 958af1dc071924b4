"""Runs the official conformance suite and reads its results.

The exit status of the suite reflects only failures in scored scenarios, so the files that it
writes are read instead. One scenario is not counted, because the suite itself skips it.
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
from tests.protocol.official_tools import CONFORMANCE, SUITE, node_command, node_environment

REQUIREMENTS = ("2025-11-25", "2026-07-28")
SKIPPED_BY_SUITE = frozenset({"tasks-status-notifications"})
WORKERS = ("1", "3")
PROBLEMS = frozenset({"FAILURE", "WARNING", "SKIPPED"})
_DIRECTORY = re.compile(r"server-(?P<scenario>.+?)-\d{4}-\d\d-\d\dT.*")


class Check(msgspec.Struct, rename="camel"):
    id: str
    status: str
    error_message: str | None = None


class ConformanceResult(msgspec.Struct):
    """The results of one set of requirements, by scenario."""

    scenarios: dict[str, list[Check]]
    output: str

    @property
    def checks(self) -> list[tuple[str, Check]]:
        return [
            (scenario, check)
            for scenario, checks in self.scenarios.items()
            if scenario not in SKIPPED_BY_SUITE
            for check in checks
        ]

    @property
    def counts(self) -> Counter[str]:
        return Counter(check.status for _, check in self.checks)

    @property
    def problems(self) -> list[str]:
        return [
            f"{check.status} {scenario}: {check.id}: {check.error_message}"
            for scenario, check in self.checks
            if check.status in PROBLEMS
        ]

    def status_of(self, id: str) -> set[str]:
        return {check.status for _, check in self.checks if check.id == id}


def run_suite(url: str, requirements: str) -> ConformanceResult:
    """Run the requirements of one protocol version against the server at *url*."""
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
    return ConformanceResult(found, done.stdout)


def main() -> int:
    failed = False
    for workers in WORKERS:
        with serving(CONFORMANCE, "--workers", workers) as server:
            for requirements in REQUIREMENTS:
                result = run_suite(f"{server.url}/mcp", requirements)
                counts = result.counts
                failed = failed or counts["FAILURE"] > 0
                tally = ", ".join(f"{count} {status.lower()}" for status, count in counts.items())
                what = f"{requirements}, workers {workers}"
                sys.stdout.write(f"{what}: {len(result.scenarios)} scenarios: {tally}\n")
                sys.stdout.writelines(f"  {problem}\n" for problem in result.problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
