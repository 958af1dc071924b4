"""Runs the official conformance suite against our client: `make clientconformance`.

The suite also runs scenarios that it does not score. Of those, the ones in `MORE` must pass too.
Then our client logs in to servers of others, and calls a server of the official SDK 1.x.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
from tests.client.other_logins import LOGGED_IN, SERVERS, log_in
from tests.client.other_sdk import CALLED, call_sdk_1
from tests.protocol.conformance import REQUIREMENTS, Check
from tests.protocol.official_tools import ROOT, SUITE, node_command, node_environment

DRIVER = Path(__file__).parent / "conformance_client.py"
MORE = frozenset(
    {
        "auth/client-credentials-basic",
        "auth/client-credentials-jwt",
        "json-schema-2020-12-preservation",
    }
)
_LISTED = re.compile(r"^  - (?:scenario: )?(\S+)", re.MULTILINE)
_SUMMARY = re.compile(r"^([✓✗]) (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
_DIRECTORY = re.compile(r"(?P<scenario>.+?)-\d{4}-\d\d-\d\dT.*")


class ClientResult(msgspec.Struct):
    """The result of one scenario."""

    passed: bool
    checks: int
    problems: list[str]


def scored_scenarios(requirements: str) -> list[str]:
    """The scenarios for clients that the suite scores."""
    page = (SUITE.parent.parent / "requirements" / f"{requirements}.yaml").read_text()
    names: list[str] = _LISTED.findall(page.partition("\nclient:")[2].partition("\nnot_scored:")[0])
    return names


def run_client_suite(*options: str) -> dict[str, ClientResult]:
    """The results by scenario; *options* choose the scenarios."""
    with tempfile.TemporaryDirectory() as out:
        driver = shlex.join([sys.executable, str(DRIVER)])
        command = node_command(SUITE, "client", "--command", driver)
        done = subprocess.run(
            [*command, *options, "-o", out],
            env={**node_environment(Path(out)), "PYTHONPATH": f"{ROOT / 'src'}"},
            capture_output=True,
            text=True,
            timeout=400,
        )
        problems = _problems(Path(out))
    found = {
        name: ClientResult(mark == "✓", int(passed), problems.get(name, []))
        for mark, name, passed, _ in _SUMMARY.findall(done.stdout)
    }
    if "OVERALL: PASSED" in done.stderr:
        # The output of a single scenario.
        found = {name: ClientResult(True, 0, each) for name, each in problems.items()}
    assert found, f"the suite did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return found


def _problems(out: Path) -> dict[str, list[str]]:
    """The failures and warnings by scenario, from the files that the suite wrote."""
    found = {}
    for file in out.rglob("checks.json"):
        name = _DIRECTORY.fullmatch(file.parent.relative_to(out).as_posix())
        assert name is not None, file
        found[name["scenario"]] = [
            f"{check.status} {check.id}: {check.error_message}"
            for check in msgspec.json.decode(file.read_bytes(), type=list[Check])
            if check.status in ("FAILURE", "WARNING")
        ]
    return found


def failures(results: dict[str, ClientResult], wanted: Iterable[str]) -> list[str]:
    """Why scenarios did not pass; a scenario that did not run has not passed."""
    return [
        f"{name}: {'; '.join(result.problems) or 'did not end well'}"
        if result is not None
        else f"{name}: did not run"
        for name in wanted
        if (result := results.get(name)) is None or not result.passed or result.problems
    ]


def main() -> int:
    failed = False
    for requirements in REQUIREMENTS:
        results = run_client_suite("--requirements", requirements)
        scored = scored_scenarios(requirements)
        wrong = failures(results, [*scored, *sorted(MORE)])
        good = sum(name in results and not failures(results, [name]) for name in scored)
        checks = sum(results[name].checks for name in scored if name in results)
        others = [name for name in results if name not in scored]
        passed = [name for name in others if not failures(results, [name])]
        sys.stdout.write(
            f"{requirements}: {good} of {len(scored)} scored scenarios passed, with {checks} "
            f"checks; {len(passed)} of {len(others)} others passed: {', '.join(passed)}\n"
        )
        sys.stdout.writelines(f"  {each}\n" for each in wrong)
        sys.stdout.flush()
        failed = failed or bool(wrong)
    for name, source in SERVERS.items():
        found = log_in(source)
        failed = failed or found != LOGGED_IN
        sys.stdout.write(f"login to a server of the {name}: {found}\n")
    return int(_calls_of_sdk_1_fail() or failed)


def _calls_of_sdk_1_fail() -> bool:
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for wire in ("stdio", "http"):
            found = call_sdk_1(wire, Path(folder))
            wrong = {name: found.get(name) for name in CALLED if found.get(name) != CALLED[name]}
            failed = failed or bool(wrong)
            good = f"{len(CALLED) - len(wrong)} of {len(CALLED)} as expected"
            sys.stdout.write(f"calls to a server of the official SDK 1.x over {wire}: {good}\n")
            sys.stdout.writelines(f"  {name}: {value}\n" for name, value in wrong.items())
    return failed


if __name__ == "__main__":
    sys.exit(main())
