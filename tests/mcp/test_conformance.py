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
def stateful(url: str) -> Verdict:
    return judge(url, "2025-11-25")


@pytest.fixture(scope="module")
def stateless(url: str) -> Verdict:
    return judge(url, "2026-07-28")


def test_the_stateful_requirements_are_met_to_the_last_check(stateful: Verdict) -> None:
    assert stateful.complaints == []
    assert stateful.counts["SUCCESS"] == 84
    assert "Total: 84 passed, 0 failed" in stateful.said


def test_the_stateless_requirements_are_met_but_for_the_tasks_extension(stateless: Verdict) -> None:
    assert stateless.complaints == []
    assert stateless.counts["SUCCESS"] >= 152


def test_white_space_around_a_name_in_a_header_is_no_mismatch(stateless: Verdict) -> None:
    assert stateless.status_of("sep-2243-server-accepts-whitespace-header-value") == {"SUCCESS"}
