"""No schema of others takes long to check: the validator cannot be interrupted."""

from __future__ import annotations

from typing import Any

import pytest

from answerback import validate
from answerback.rules.finding import text_result as text

NOT_CHECKED = "the schema is too large to be checked"


def chain(length: int, link: Any) -> dict[str, Any]:
    """A schema whose definitions refer to each other, the last to none."""
    defs = {f"d{at}": link({"$ref": f"#/$defs/d{at + 1}"}) for at in range(length)}
    defs[f"d{length}"] = {"type": "object"}
    return {"$ref": "#/$defs/d0", "$defs": defs}


def nested(levels: int) -> Any:
    data: Any = 1
    for _ in range(levels):
        data = {"a": data}
    return data


COSTLY = {
    "allOf that doubles": (chain(40, lambda ref: {"allOf": [ref, ref]}), {}),
    "anyOf that doubles": (chain(40, lambda ref: {"anyOf": [ref, ref]}), {}),
    "oneOf and not": (chain(40, lambda ref: {"oneOf": [ref, {"not": ref}]}), {}),
    "unevaluatedProperties": (
        chain(25, lambda ref: {"anyOf": [ref, ref], "unevaluatedProperties": False}),
        {},
    ),
    "pointers with signs": (
        {
            "$ref": "#/$defs/all/allOf/+0",
            "$defs": {
                "all": {
                    "allOf": [
                        {"allOf": [{"$ref": f"#/$defs/all/allOf/+{at + 1}"}] * 2} if at < 40 else {}
                        for at in range(41)
                    ]
                }
            },
        },
        {},
    ),
    "a long chain": (chain(50_000, lambda ref: {"allOf": [ref]}), {}),
    "a wide allOf": ({"allOf": [{"type": "object"}] * 50_000}, {}),
    "recursion that doubles": (
        {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
        nested(60),
    ),
    "an enum of objects": (
        {"properties": {"a": {"items": {"enum": [{"k": at} for at in range(5000)]}}}},
        {"a": [{"k": -1}] * 2000},
    ),
    "many patterns": (
        {"properties": {f"a{at}": {"pattern": f"^.{{1,9}}{at}$"} for at in range(1000)}},
        {},
    ),
    "many classes in a pattern": ({"properties": {"a": {"pattern": r"\s" * 300}}}, {}),
    "patterns for many names": (
        {"patternProperties": {f"^x{at}.*y$": True for at in range(100)}},
        {f"x{at}": 1 for at in range(2000)},
    ),
    "a pattern with many states": (
        {"properties": {"a": {"pattern": "a.{30}c"}}},
        {"a": "ab" * 500_000},
    ),
    "uniqueItems": (
        {"properties": {"a": {"allOf": [{"uniqueItems": True} for _ in range(100)]}}},
        {"a": [[at] for at in range(20_000)]},
    ),
    "patterns that backtrack": (
        {"properties": {"a": {"items": {"pattern": r"^(a*)*\1b$"}}}},
        {"a": ["a" * 40] * 50_000},
    ),
    "a pattern with many states for a long text": (
        {"properties": {"a": {"pattern": "a[ab]{3000}c"}}},
        {"a": "ab" * 10_000},
    ),
    "a pattern that looks ahead everywhere": (
        {"properties": {"a": {"pattern": "(?=[ab]*a.{60}c)d"}}},
        {"a": "ab" * 10_000},
    ),
    "a pattern that looks ahead everywhere for many texts": (
        {"properties": {"a": {"items": {"not": {"pattern": "(?=[ab]*a.{60}c)d"}}}}},
        {"a": ["ab" * 150] * 1_000},
    ),
    "a pattern that looks ahead in one of two branches": (
        {"properties": {"a": {"pattern": "^(?!a)b|[ab]*a.{60}c"}}},
        {"a": "ab" * 10_000},
    ),
    "an enum of fractions": (
        {"properties": {"a": {"items": {"enum": [at + 0.5 for at in range(10_000)]}}}},
        {"a": [9_999.5] * 1_000},
    ),
    "fractions and an enum of numbers": (
        {"properties": {"a": {"items": {"not": {"enum": list(range(10_000))}}}}},
        {"a": [0.25] * 1_000},
    ),
    "fractions with bounds": (
        {"properties": {"a": {"items": {"minimum": 1e-300, "maximum": 0.5}}}},
        {"a": [0.25] * 300_000},
    ),
    "very large fractions": (
        {"properties": {"a": {"items": {"multipleOf": 0.5}}}},
        {"a": [1e300] * 50_000},
    ),
    "long numbers": (
        {"properties": {"a": {"items": {"multipleOf": 1e-300}}}},
        {"a": [10**4000] * 500},
    ),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_schema_that_takes_too_long_is_one_finding(name: str) -> None:
    schema, data = COSTLY[name]

    found = validate(text("", structuredContent=data), schema=schema)

    assert [(each.rule, each.message) for each in found if each.rule == "AB320"] == [
        ("AB320", NOT_CHECKED)
    ]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "#"}, "contains itself"),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#"}}}, "contains itself"),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, "a dynamic reference is not followed"),
        ({"$ref": "#a", "$defs": {"b": {"$anchor": "a"}}}, "a reference to #a is not followed"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "b"}}}, "an inner $id"),
    ],
)
def test_a_schema_whose_references_cannot_be_counted_is_not_checked(
    schema: dict[str, Any], reason: str
) -> None:
    [found] = validate(text("{}", structuredContent={}), schema=schema)

    assert found.rule == "AB320"
    assert reason in found.message


def test_a_pattern_that_is_too_large_is_not_compiled() -> None:
    schema = {"properties": {"a": {"pattern": r"^(\w{1,100}){1,100}$"}}}

    [found] = validate(text("{}", structuredContent={}), schema=schema)

    assert found.rule == "AB320"
    assert 'is not a "regex", or a very large one' in found.message


LARGE = {"a": list(range(300_000))}


@pytest.mark.parametrize(
    ("schema", "place", "message"),
    [
        ({"properties": {"a": {"items": {"type": "string"}}}}, "/a/0", "0 is not of type"),
        ({"allOf": [{"type": "string"}] * 1000}, "", '{"a":[0,1,2'),
        ({"anyOf": [{"type": "string"}] * 1000}, "", "too large to say where"),
    ],
)
def test_large_data_that_breaks_a_schema_everywhere_is_one_finding(
    schema: dict[str, Any], place: str, message: str
) -> None:
    found = validate(text("", structuredContent=LARGE), schema=schema)

    [broken] = [each for each in found if each.rule == "AB320"]
    assert broken.pointer == f"/structuredContent{place}"
    assert message in broken.message
    assert len(broken.message) < 2000


def test_deep_data_that_breaks_a_schema_is_a_finding() -> None:
    found = validate(text("", structuredContent=nested(900)), schema={"required": ["b"]})

    assert "AB320" in [each.rule for each in found]


TREE = {
    "$defs": {
        "json": {
            "anyOf": [
                {"type": ["string", "number", "boolean", "null"]},
                {"type": "array", "items": {"$ref": "#/$defs/json"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
            ]
        }
    },
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/json"}},
    "additionalProperties": False,
}
ROW = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"anyOf": [{"type": "string", "maxLength": 100}, {"type": "null"}]},
        "kind": {"enum": ["a", "b", "c"]},
        "at": {"type": "string", "format": "date-time"},
        "mail": {"type": "string", "pattern": r"^[^@]+@[^@]+$"},
    },
    "required": ["id", "name", "kind"],
    "additionalProperties": False,
}
ROWS = {"type": "object", "properties": {"rows": {"type": "array", "items": ROW}}}

EMAIL = r"^(?!\.)(?!.*\.\.)([\w'+\-\.]*)[\w+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (TREE, {"a": nested(50)}),
        (TREE, {"a": [[{"b": [at, None, "x"]}] for at in range(10_000)]}),
        (ROWS, {"rows": [{"id": at, "name": None, "kind": "b"} for at in range(10_000)]}),
        (ROWS, {"rows": [{"id": 1, "name": "a", "kind": "c", "mail": "a@b"}] * 10_000}),
        (
            {"additionalProperties": {"items": {"pattern": r"^(?!\.)[^@]+@[^@]+$"}}},
            {"rows": ["a@b.example"] * 1000},
        ),
        (
            {"additionalProperties": {"items": {"pattern": EMAIL}}},
            {"rows": ["someone.with.a.name@mail.example"] * 5_000},
        ),
        (
            {"additionalProperties": {"items": {"type": "number", "maximum": 1.0}}},
            {"rows": [0.25] * 30_000},
        ),
        (
            {"additionalProperties": {"items": {"type": "integer", "enum": list(range(1, 13))}}},
            {"rows": [12] * 50_000},
        ),
        (
            {"additionalProperties": {"items": {"type": "number", "multipleOf": 0.01}}},
            {"rows": [1.25] * 50_000},
        ),
        ({"additionalProperties": {"items": {"pattern": "^.{2,255}$"}}}, {"rows": ["ab"]}),
        (
            {"$id": "https://a.example/s", "$ref": "#/definitions/A%3CB%3E"}
            | {"definitions": {"A<B>": ROWS}},
            {"rows": []},
        ),
    ],
)
def test_usual_schemas_are_checked(schema: dict[str, Any], data: Any) -> None:
    broken = {**data, "rows": 5, "c": ["a"]}

    assert "AB320" not in [
        each.rule for each in validate(text("", structuredContent=data), schema=schema)
    ]
    assert "AB320" in [
        each.rule for each in validate(text("", structuredContent=broken), schema=schema)
    ]
