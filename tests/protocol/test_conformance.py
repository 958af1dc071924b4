"""The official conformance suite against examples/conformance.py, in both eras."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import serving
from tests.protocol.conformance import ConformanceResult, run_suite
from tests.protocol.official_tools import CONFORMANCE


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(CONFORMANCE) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(scope="module")
def stateful(url: str) -> ConformanceResult:
    return run_suite(url, "2025-11-25")


@pytest.fixture(scope="module")
def stateless(url: str) -> ConformanceResult:
    return run_suite(url, "2026-07-28")


def test_every_check_of_the_stateful_era_2025_11_25_succeeds(stateful: ConformanceResult) -> None:
    assert stateful.problems == []
    assert stateful.counts["SUCCESS"] == 84
    assert "Total: 84 passed, 0 failed" in stateful.output


def test_every_check_of_the_stateless_era_2026_07_28_succeeds(
    stateless: ConformanceResult,
) -> None:
    assert stateless.problems == []
    assert stateless.counts["SUCCESS"] >= 196


def test_the_checks_of_the_tasks_extension_run(stateless: ConformanceResult) -> None:
    ran = {name for name, checks in stateless.scenarios.items() if name.startswith("tasks-")}

    assert len(ran) == 10


def test_white_space_around_a_header_value_is_accepted(stateless: ConformanceResult) -> None:
    assert stateless.status_of("sep-2243-server-accepts-whitespace-header-value") == {"SUCCESS"}
