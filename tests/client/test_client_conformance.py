"""Two scenarios of the official suite against our client; `make clientconformance` runs all."""

from __future__ import annotations

import pytest
from tests.client.__main__ import failures, run_client_suite


@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        ("auth/scope-step-up", "2025-11-25"),
        ("auth/authorization-server-migration", "2026-07-28"),
    ],
)
def test_the_client_passes_the_suites_scenario(scenario: str, version: str) -> None:
    results = run_client_suite("--scenario", scenario, "--spec-version", version)

    assert failures(results, [scenario]) == []
