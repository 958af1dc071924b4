"""The official conformance suite, whose requests go to three hosts in turn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conftest import Server
from tests.protocol.conformance import run_suite
from tests.protocol.official_tools import CONFORMANCE
from tests.state.proxy import round_robin


@pytest.mark.parametrize(("requirements", "checks"), [("2025-11-25", 84), ("2026-07-28", 196)])
def test_every_check_of_the_official_suite_succeeds_over_three_hosts(
    start_app: Callable[..., Server], requirements: str, checks: int
) -> None:
    ports = [start_app(CONFORMANCE, "serve").port for _ in range(3)]

    with round_robin(*ports) as url:
        result = run_suite(f"{url}/mcp", requirements)

    assert result.problems == []
    assert result.counts["SUCCESS"] >= checks
