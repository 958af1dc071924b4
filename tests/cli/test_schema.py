"""`schema` prints the JSON Schema of a reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest

Run = Callable[..., Any]
SEED = Path(__file__).parent.parent / "seeds" / "seed_000.schema.json"
TEXT = {"type": "text", "text": "5 °C"}


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
def test_the_schema_of_a_dialect_accepts_valid_and_refuses_invalid_replies(
    answerback: Run, dialect: str, good: Any, bad: Any
) -> None:
    schema = json.loads(answerback("schema", dialect).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


def test_a_rest_reply_may_be_any_object_but_its_error_must_be_a_string(answerback: Run) -> None:
    schema = json.loads(answerback("schema", "rest").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    is_valid = jsonschema.Draft202012Validator(schema).is_valid

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
    assert [each for each in good if not is_valid(each)] == []
    assert [each for each in bad if is_valid(each)] == []
    assert "any JSON object" in schema["description"]


def test_the_schema_of_the_convention_is_printed_word_for_word(answerback: Run) -> None:
    done = answerback("schema", "envelope", "--convention")

    assert json.loads(done.stdout) == json.loads(SEED.read_text())


def test_only_the_envelope_has_the_schema_of_a_convention(answerback: Run) -> None:
    assert answerback("schema", "mcp", "--convention").exit == 2


def test_the_old_flag_is_refused_with_what_to_write(answerback: Run) -> None:
    done = answerback("schema", "envelope", "--seed")

    assert done.exit == 2
    assert "--seed is now --convention: write schema envelope --convention" in done.stderr
