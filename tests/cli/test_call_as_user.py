"""`call --user` calls a tool as a user, for gated tools on the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.conftest import ROOT

ACCOUNTS = ROOT / "examples" / "accounts.py"


def call(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ACCOUNTS), "call", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def test_a_user_with_everything_that_is_required_gets_the_data() -> None:
    done = call("balances", "--user", "cy", "--scope", "accounts:read")

    assert done.stderr == ""
    assert json.loads(done.stdout)["structuredContent"]["totalBalance"] == 12345.67


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--user", "cy"), "This needs more than you have allowed: accounts:read"),
        (
            ("--user", "bob", "--scope", "accounts:read", "--scope", "more"),
            "You have not linked an account at 'plaid'. Link one to use your accounts: http",
        ),
    ],
)
def test_a_user_who_lacks_something_is_refused(words: tuple[str, ...], text: str) -> None:
    done = call("balances", *words)

    assert done.returncode == 77
    assert text in done.stderr


def test_a_scope_without_a_user_is_a_usage_error() -> None:
    done = call("balances", "--scope", "accounts:read")

    assert done.returncode == 2
    assert "--scope needs --user" in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ((), "act as a user: add --user NAME --scope accounts:read"),
        (("--user", "cy"), "act as a user: add --scope accounts:read"),
    ],
)
def test_the_refusal_of_a_gated_tool_names_the_options(words: tuple[str, ...], hint: str) -> None:
    done = call("balances", *words)

    assert hint in done.stderr
