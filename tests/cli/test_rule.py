"""`rule` explains and lists rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from answerback.cli import main
from answerback.rules.catalogue import RULES

Run = Callable[..., Any]


@pytest.mark.parametrize("word", ["AB101", "missing-success"])
def test_a_rule_is_explained_with_its_examples(answerback: Run, word: str) -> None:
    done = answerback("rule", word)

    assert done.exit == 0
    assert done.stdout.startswith("AB101 missing-success (error; envelope)\n")
    assert RULES["AB101"].why in done.stdout
    assert "→ Missing success field" in done.stdout


def test_the_list_has_only_rules_that_exist(answerback: Run) -> None:
    for line in answerback("rule").stdout.splitlines():
        if line.startswith("  AB"):
            assert line.split()[0] in RULES


def test_all_rules_are_listed_without_an_argument(answerback: Run) -> None:
    done = answerback("rule")

    assert [number for number in RULES if number not in done.stdout] == []


def test_a_misspelled_rule_gets_a_suggestion(answerback: Run) -> None:
    done = answerback("rule", "missing-sucess")

    assert done.exit == 2
    assert "did you mean missing-success" in done.stderr


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("AB999", "AB603 (message-too-large)"),
        ("AB209", "AB208 (error-not-shown)"),
        ("hidden", "error-hidden-in-text"),
        ("traceback_show", "traceback-shown"),
        ("AB201x", "AB201"),
    ],
)
@pytest.mark.parametrize("command", [("rule",), ("lint", "replies.jsonl", "--select")])
def test_an_unknown_rule_gets_similar_rules_suggested(
    answerback: Run, command: tuple[str, ...], word: str, near: str
) -> None:
    done = answerback(*command, word)

    assert done.exit == 2
    assert f"no rule is called {word!r}; did you mean" in done.stderr
    assert near in done.stderr


def test_a_prefix_lists_the_rules_of_that_family(answerback: Run) -> None:
    lines = answerback("rule", "ab6").stdout.splitlines()

    assert [line.split()[0] for line in lines[1:]] == ["AB601", "AB602", "AB603", "AB604", "AB605"]


def test_every_rule_is_explained_without_mentioning_a_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in RULES:
        # In this process, because a process for each rule takes many seconds.
        status = main(["rule", number])

        printed = capsys.readouterr().out
        assert status == 0
        assert printed.startswith(number)
        assert "seed" not in printed.lower()
