"""The dialect that an Accept header asks for."""

import pytest

from answerback.contract import DIRECT, ENVELOPE, STANDARD, Contract
from answerback.dialects.accept import choose

MCP = "application/vnd.answerback.mcp+json"
ENVELOPE_TYPE = "application/vnd.answerback.envelope+json"
PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    "accept",
    [None, "", "*/*", "application/json", "application/*", "text/html", "image/png, */*;q=0.1"],
)
@pytest.mark.parametrize("contract", [STANDARD, ENVELOPE, DIRECT])
def test_an_accept_header_that_names_no_dialect_gets_the_one_of_the_contract(
    accept: str | None, contract: Contract
) -> None:
    assert choose(accept, contract, failed=False) == contract.http
    assert choose(accept, contract, failed=True) == contract.http


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (MCP, "mcp"),
        (MCP.upper(), "mcp"),
        (f"{MCP}; version=1", "mcp"),
        (f"{MCP}, application/json", "mcp"),
        (f"application/json, {MCP};q=0.9", "rest"),
        (f"*/*;q=0.1, {MCP};q=0.2", "mcp"),
        (f"{MCP};q=0", "rest"),
        (f"{MCP};q=0.2, {ENVELOPE_TYPE};q=0.4", "envelope"),
        (f"{MCP}, {ENVELOPE_TYPE}", "mcp"),
        (f"application/json;q=0, {MCP};q=0.1", "mcp"),
        (f"application/json;q=0.3, */*, {MCP};q=0.5", "mcp"),
    ],
)
def test_the_dialect_with_the_highest_quality_is_chosen(accept: str, expected: str) -> None:
    assert choose(accept, STANDARD, failed=False) == expected
    assert choose(accept, STANDARD, failed=True) == expected


@pytest.mark.parametrize(
    ("accept", "success", "error"),
    [
        (PROBLEM, "rest", "problem"),
        (f"application/json, {PROBLEM}", "rest", "problem"),
        (f"{MCP}, {PROBLEM}", "mcp", "problem"),
        (f"application/json, {PROBLEM};q=0.5", "rest", "rest"),
        (f"{MCP}, {PROBLEM};q=0.5", "mcp", "mcp"),
    ],
)
def test_problem_is_chosen_for_errors_only(accept: str, success: str, error: str) -> None:
    assert choose(accept, STANDARD, failed=False) == success
    assert choose(accept, STANDARD, failed=True) == error


@pytest.mark.parametrize(
    "accept", [",", ";;;", "q=1", f"{MCP};q=much", f"{MCP};q=nan", f"{MCP};q=-1", f"{MCP};q=1e9"]
)
def test_malformed_entries_of_the_accept_header_are_ignored(accept: str) -> None:
    assert choose(accept, STANDARD, failed=True) == "rest"
