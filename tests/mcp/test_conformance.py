"""The official conformance suite against examples/conformance.py, in both eras."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import serving
from tests.mcp.conformance import Verdict, judge
from tests.mcp.judges import CONFORMANCE


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(CONFORMANCE) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(scope="module")
def legacy(url: str) -> Verdict:
    return judge(url, "2025-11-25")


@pytest.fixture(scope="module")
def modern(url: str) -> Verdict:
    return judge(url, "2026-07-28")


def test_the_legacy_requirements_are_met_to_the_last_check(legacy: Verdict) -> None:
    assert legacy.complaints == []
    assert legacy.counts["SUCCESS"] == 84
    assert "Total: 84 passed, 0 failed" in legacy.said


def test_the_modern_requirements_are_met_but_for_the_tasks_extension(modern: Verdict) -> None:
    assert modern.complaints == []
    assert modern.counts["SUCCESS"] >= 152


def test_white_space_around_a_name_in_a_header_is_no_mismatch(modern: Verdict) -> None:
    assert modern.status_of("sep-2243-server-accepts-whitespace-header-value") == {"SUCCESS"}
