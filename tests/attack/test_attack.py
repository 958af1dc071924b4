"""A short run of `make attack`, and proof that the attack notices a failure."""

from __future__ import annotations

import subprocess
import time

import pytest
from tests.attack.client_attack import Figures, attack_client, judge
from tests.attack.hostile_messages import Generator
from tests.attack.http_attack import attack_mcp_over_http, attack_raw_http, attack_rest
from tests.attack.pipeline import RawResponse
from tests.attack.process_attack import attack_cgi, attack_command_line, check_cgi
from tests.attack.report import Plan, WireReport, table
from tests.attack.stdio_attack import attack_stdio


def plan(cases: int) -> Plan:
    # How long other calls wait is measured by `make attack`, which has the machine to itself.
    return Plan(cases, time.monotonic() + 600, large=1_000_000, longest_wait=30)


def test_no_attack_on_stdio_succeeds() -> None:
    report = attack_stdio(plan(2000))

    assert report.failures == []
    assert report.cases >= 2000


def test_no_attack_on_mcp_over_http_succeeds() -> None:
    report = attack_mcp_over_http(plan(1000))

    assert report.failures == []
    assert report.cases >= 1000


def test_no_attack_on_rest_succeeds() -> None:
    report = attack_rest(plan(1000))

    assert report.failures == []
    assert report.cases >= 1000


def test_no_malformed_http_succeeds() -> None:
    report = attack_raw_http(plan(60))

    assert report.failures == []
    assert report.cases == 60


def test_no_attack_on_cgi_or_the_command_line_succeeds() -> None:
    reports = [attack_cgi(plan(5)), attack_command_line(plan(5))]

    assert [report.failures for report in reports] == [[], []]
    assert [report.cases for report in reports] == [5, 5]


def test_no_attack_on_the_client_succeeds() -> None:
    report = attack_client(plan(200))

    assert report.failures == []
    assert report.cases >= 190
    assert "hostile replies" in table([report])


def test_a_late_or_dear_reply_is_counted_as_a_failure() -> None:
    report = WireReport("a wire")
    strict = Plan(1, time.monotonic() + 60)

    for figures in (
        Figures("late", 1.0, seconds=1.3),
        Figures("held", 1.0, held=0.3),
        Figures("large", 1.0, memory=300 * 1024 * 1024),
        Figures("raised", 1.0, problem="ValueError"),
    ):
        judge(figures, figures.name, strict, report)

    assert [failure.partition(":")[0] for failure in report.failures] == [
        *("late", "held", "large", "raised"),
    ]


def test_the_same_seed_makes_the_same_messages() -> None:
    first, second, other = (Generator("2025-11-25", seed) for seed in (1, 1, 2))

    messages = [first.message() for _ in range(50)]

    assert messages == [second.message() for _ in range(50)]
    assert messages != [other.message() for _ in range(50)]


def test_a_spoiled_token_is_never_the_token() -> None:
    generator = Generator("2025-11-25", 1)

    assert "a.b-c" not in {generator.spoiled("a.b-c") for _ in range(500)}


def test_a_failed_check_and_a_long_wait_are_counted_as_failures() -> None:
    report = WireReport("a wire", cases=2)

    with report.caught("an attack"):
        raise AssertionError("the server ended")
    report.waited(1.5, "a large body")
    report.expect(RawResponse(200).status == 500, "another status")

    assert len(report.failures) == 3
    assert "FAILED a wire: an attack: AssertionError: the server ended" in table([report])


def test_an_unexpected_exception_is_not_taken_for_a_failure_of_the_server() -> None:
    report = WireReport("a wire")

    with pytest.raises(ZeroDivisionError), report.caught("an attack"):
        _ = 1 // 0

    assert report.failures == []


def test_a_response_of_cgi_with_another_status_is_noticed() -> None:
    output = b"Status: 200 OK\r\nContent-Type: application/json\r\n\r\n{}"
    done = subprocess.CompletedProcess(["cgi"], 0, stdout=output, stderr=b"")

    check_cgi(done, {200})
    with pytest.raises(AssertionError, match="status 200"):
        check_cgi(done, {400})
