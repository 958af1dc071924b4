"""`rule` and `schema`: what can be looked up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest

from answerback.rules.catalogue import RULES

Run = Callable[..., Any]
SEED = Path(__file__).parent.parent / "seeds" / "seed_000.schema.json"
TEXT = {"type": "text", "text": "5 °C"}


@pytest.mark.parametrize("word", ["AB101", "missing-success"])
def test_a_rule_is_explained_with_its_examples(answerback: Run, word: str) -> None:
    done = answerback("rule", word)

    assert done.exit == 0
    assert done.stdout.startswith("AB101 missing-success (error; envelope)\n")
    assert RULES["AB101"].why in done.stdout
    assert "→ Missing success field" in done.stdout


def test_every_rule_can_be_explained(answerback: Run) -> None:
    for line in answerback("rule").stdout.splitlines():
        if line.startswith("  AB"):
            assert line.split()[0] in RULES


def test_without_a_rule_all_are_listed(answerback: Run) -> None:
    done = answerback("rule")

    assert [number for number in RULES if number not in done.stdout] == []


def test_a_rule_that_there_is_not_gets_advice(answerback: Run) -> None:
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
def test_a_rule_that_there_is_not_is_told_with_what_is_near(
    answerback: Run, command: tuple[str, ...], word: str, near: str
) -> None:
    done = answerback(*command, word)

    assert done.exit == 2
    assert f"no rule is called {word!r}; did you mean" in done.stderr
    assert near in done.stderr


def test_the_rules_of_a_family_are_listed_by_what_they_begin_with(answerback: Run) -> None:
    told = answerback("rule", "ab6").stdout

    assert [line.split()[0] for line in told.splitlines()[1:]] == ["AB601", "AB602", "AB603"]


def test_no_rule_speaks_of_what_only_its_makers_know(answerback: Run) -> None:
    for number in RULES:
        assert "seed" not in answerback("rule", number).stdout.lower()


@pytest.mark.parametrize(
    ("dialect", "good", "bad"),
    [
        ("mcp", {"content": [TEXT]}, {"content": [{"type": "blob"}]}),
        ("mcp", {"content": [TEXT], "isError": True}, {"content": [TEXT], "isError": "yes"}),
        (
            "envelope",
            {"success": True, "timestamp": "2026-01-31T12:00:00Z", "content": [TEXT]},
            {"success": True, "content": [TEXT]},
        ),
        ("problem", {"type": "x", "title": "", "status": 1, "detail": "", "code": "X"}, {}),
    ],
)
def test_the_schema_of_a_dialect_takes_what_is_right_and_refuses_what_is_not(
    answerback: Run, dialect: str, good: Any, bad: Any
) -> None:
    schema = json.loads(answerback("schema", dialect).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


def test_a_rest_reply_may_be_any_object_but_its_error_is_just_one_text(answerback: Run) -> None:
    schema = json.loads(answerback("schema", "rest").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    takes = jsonschema.Draft202012Validator(schema).is_valid

    good: list[Any] = [
        {"result": 10},
        {},
        {"id": 7},
        {"content": [TEXT]},
        {"error": "no such city"},
    ]
    good += [{"error": "exit 1", "job": 7}, {"error": None, "job": 7}]
    bad: list[Any] = [{"error": 404}, {"error": None}, {"error": {"message": "no such city"}}]
    bad += [{"error": ["no such city"]}, [1, 2], "done", 7, None]
    assert [each for each in good if not takes(each)] == []
    assert [each for each in bad if takes(each)] == []
    assert "any JSON object" in schema["description"]


def test_the_schema_of_the_seed_is_printed_word_for_word(answerback: Run) -> None:
    done = answerback("schema", "envelope", "--seed")

    assert json.loads(done.stdout) == json.loads(SEED.read_text())


def test_only_the_envelope_has_a_schema_of_a_seed(answerback: Run) -> None:
    assert answerback("schema", "mcp", "--seed").exit == 2
