"""Seed 000: the rules find all that its validator, auditor and schema refuse, and its pitfalls."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from tests.seeds.quotes import IMAGE_000 as IMAGE
from tests.seeds.quotes import RESOURCE_000 as RESOURCE
from tests.seeds.quotes import STARTED_000 as TEXT
from tests.seeds.quotes import STARTED_DATA_000

from answerback import validate
from answerback.dialects.reply_schemas import convention_schema, dialect_schema
from answerback.rules.reply_view import CheckContext
from answerback.rules.validation import repair

NOW = "2026-01-31T12:00:00.000Z"
GOOD: dict[str, Any] = {
    "success": True,
    "timestamp": NOW,
    "content": [TEXT],
    "data": STARTED_DATA_000,
}
FAILED: dict[str, Any] = {
    "success": False,
    "timestamp": NOW,
    "content": [{"type": "text", "text": "Error: Instance 'instance-1' not found"}],
    "error": {
        "code": "INSTANCE_NOT_FOUND",
        "message": "Instance 'instance-1' not found",
        "details": {"instanceId": "instance-1", "availableInstances": ["instance-2"]},
    },
}


def without(name: str, whole: dict[str, Any] = GOOD) -> dict[str, Any]:
    return {key: value for key, value in whole.items() if key != name}


def found(reply: Any) -> dict[str, str]:
    return {each.rule: each.message for each in validate(reply, dialect="envelope")}


# Replies with the auditor's text and, where it throws one, the validator's.
ISSUES = [
    (without("success"), "Missing success field", "Response must include a boolean success field"),
    (
        GOOD | {"success": "yes"},
        "Missing success field",
        "Response must include a boolean success field",
    ),
    (without("content"), "Missing content array", "Response must include a content array"),
    (GOOD | {"content": "text"}, "Missing content array", "Response must include a content array"),
    (GOOD | {"content": []}, "Empty content array", ""),
    (
        GOOD | {"content": [TEXT, {"text": "Operation completed"}]},
        "Content item 1 missing type field",
        "Each content item must include a type field",
    ),
    (
        GOOD | {"content": [{"type": "", "text": "Operation completed"}]},
        "Content item 0 missing type field",
        "Each content item must include a type field",
    ),
    (without("timestamp"), "Missing timestamp", ""),
    (without("error", FAILED), "Error response missing error object", ""),
]


@pytest.mark.parametrize(("reply", "issue", "thrown"), ISSUES)
def test_seed_000_findings_have_the_texts_of_the_auditor_and_the_validator(
    reply: dict[str, Any], issue: str, thrown: str
) -> None:
    findings = [each for each in validate(reply, "envelope") if each.message == issue]

    assert len(findings) == 1
    assert findings[0].severity == "error"
    assert findings[0].hint == thrown or not thrown


@pytest.mark.parametrize("reply", [GOOD, FAILED, GOOD | {"content": [TEXT, IMAGE, RESOURCE]}])
def test_seed_000_its_own_examples_have_no_findings(reply: dict[str, Any]) -> None:
    assert validate(reply) == ()


def test_seed_000_a_datetime_object_is_a_valid_timestamp() -> None:
    assert found(GOOD | {"timestamp": datetime.now(UTC)}) == {}


def test_seed_000_a_missing_timestamp_is_added_by_the_repair() -> None:
    reply = without("timestamp")

    left = repair(reply, "envelope", CheckContext())

    assert left == ()
    assert datetime.fromisoformat(reply["timestamp"]).tzinfo is not None


PITFALLS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("1", {"success": True, "data": {"instanceId": "instance-1"}}, {"AB102", "AB105"}),
    (
        "2",
        {"success": False, "message": "Instance not found"},
        {"AB102", "AB105", "AB106"},
    ),
    ("3", {"success": True, "content": [{"text": "Operation completed"}]}, {"AB104", "AB105"}),
    (
        "4",
        {
            "success": True,
            "timestamp": NOW,
            "content": [{"type": "text", "text": '{"instances":[{"id":"instance-1"}]}'}],
            "data": {"instances": [{"id": "instance-1"}]},
        },
        {"AB410"},
    ),
    ("5, ok", {"ok": True, "data": {}}, {"AB101", "AB102", "AB105"}),
    ("5, status", {"status": "success", "result": {}}, {"AB101", "AB102", "AB105"}),
]


@pytest.mark.parametrize(
    ("reply", "rules"), [each[1:] for each in PITFALLS], ids=[each[0] for each in PITFALLS]
)
def test_seed_000_a_pitfall_is_found(reply: dict[str, Any], rules: set[str]) -> None:
    assert set(found(reply)) == rules


def test_seed_000_pitfall_5_the_hint_names_the_field_that_was_used_instead() -> None:
    first = validate({"status": "success", "result": {}}, "envelope")[0]

    assert first.hint == "use success, not status"


def test_seed_000_an_error_as_plain_text_is_not_json() -> None:
    assert [each.rule for each in validate(b"Error: Instance not found")] == ["AB100"]


# Documents on which the seed's schema and ours differ; docs/reference/conventions.md says why.
ONLY_OURS_ACCEPTS: list[dict[str, Any]] = [
    GOOD | {"data": [1, 2]},
    GOOD | {"data": None},
    FAILED | {"error": FAILED["error"] | {"details": ["instance-1"]}},
]
ONLY_THE_SEED_ACCEPTS: list[dict[str, Any]] = [
    GOOD | {"content": [{"type": "chart", "series": [1, 2]}]},
    GOOD | {"content": [{"type": "audio"}]},
    GOOD | {"content": [{"type": "", "text": "Operation completed"}]},
    GOOD | {"content": [IMAGE | {"width": "800"}]},
    GOOD | {"content": [IMAGE | {"caption": 1}]},
    GOOD | {"content": [RESOURCE | {"metadata": "none"}]},
    GOOD | {"content": [TEXT | {"annotations": {"priority": 9}}]},
    FAILED | {"error": FAILED["error"] | {"retryable": "yes"}},
    GOOD | {"meta": []},
]


REFUSED_BY_SCHEMA: list[dict[str, Any]] = [
    *(
        reply
        for reply, _, _ in ISSUES
        if reply.get("content") != [{"type": "", "text": "Operation completed"}]
    ),
    GOOD | {"timestamp": 17},
    GOOD | {"content": [{"type": "text"}]},
    GOOD | {"content": [{"type": "text", "text": 1}]},
    GOOD | {"content": ["text"]},
    *({**GOOD, "content": [without(name, IMAGE)]} for name in ("url", "altText")),
    *({**GOOD, "content": [IMAGE | {name: 1}]} for name in ("url", "altText")),
    *(
        {**GOOD, "content": [without(name, RESOURCE)]}
        for name in ("resourceType", "identifier", "name")
    ),
    *(
        {**GOOD, "content": [RESOURCE | {name: 1}]}
        for name in ("resourceType", "identifier", "name")
    ),
    *ONLY_OURS_ACCEPTS,
    GOOD | {"error": FAILED["error"]},
    FAILED | {"error": "Instance not found"},
    FAILED | {"error": {"code": "INSTANCE_NOT_FOUND"}},
    FAILED | {"error": {"message": "Instance 'instance-1' not found"}},
    FAILED | {"error": FAILED["error"] | {"code": 404}},
    FAILED | {"error": FAILED["error"] | {"message": None}},
]


@pytest.mark.parametrize("reply", REFUSED_BY_SCHEMA)
def test_seed_000_every_reply_that_its_schema_refuses_has_a_finding(reply: dict[str, Any]) -> None:
    assert not jsonschema.Draft7Validator(convention_schema()).is_valid(reply)

    assert validate(reply, "envelope")


def accepts(schema: dict[str, Any], reply: Any) -> bool:
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft7Validator)
    return bool(validator(schema).is_valid(reply))


@pytest.mark.parametrize("reply", ONLY_OURS_ACCEPTS)
def test_seed_000_some_documents_are_accepted_by_our_schema_only(reply: dict[str, Any]) -> None:
    assert accepts(dialect_schema("envelope"), reply)
    assert not accepts(convention_schema(), reply)


@pytest.mark.parametrize("reply", ONLY_THE_SEED_ACCEPTS)
def test_seed_000_some_documents_are_accepted_by_its_schema_only(reply: dict[str, Any]) -> None:
    assert accepts(convention_schema(), reply)
    assert not accepts(dialect_schema("envelope"), reply)


def test_seed_000_on_other_documents_the_two_schemas_agree() -> None:
    known = [*ONLY_OURS_ACCEPTS, *ONLY_THE_SEED_ACCEPTS]
    others = [each for each in [GOOD, FAILED, *REFUSED_BY_SCHEMA] if each not in known]
    others += [copy.deepcopy(reply) for _, reply, _ in PITFALLS]

    for reply in others:
        in_convention = accepts(convention_schema(), reply)
        assert in_convention == accepts(dialect_schema("envelope"), reply), reply
