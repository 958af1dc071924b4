"""Shapes: wrapping data and schemas, and unwrapping data."""

from typing import Any

import msgspec
import pytest

from answerback.core.shape import BARE, EMPTY, RESULT, SPREAD, Shape

CASES: list[tuple[Shape, Any, bytes]] = [
    (BARE, {"a": 1}, b'{"a":1}'),
    (RESULT, 5, b'{"result":5}'),
    (RESULT, None, b'{"result":null}'),
    (RESULT, {"result": 1}, b'{"result":{"result":1}}'),
    (EMPTY, None, b"{}"),
    (SPREAD, [1, "a", [2]], b'{"result0":1,"result1":"a","result2":[2]}'),
]


@pytest.mark.parametrize(("shape", "data", "sent"), CASES)
def test_wrapped_data_is_unwrapped_to_the_same_value(shape: Shape, data: Any, sent: bytes) -> None:
    wrapped = shape.wrap(msgspec.json.encode(data))

    assert wrapped == sent
    assert shape.unwrap(msgspec.json.decode(wrapped)) == data


def test_more_than_ten_spread_results_keep_their_order() -> None:
    data = list(range(11))

    wrapped = SPREAD.wrap(msgspec.json.encode(data))

    assert SPREAD.unwrap(msgspec.json.decode(wrapped)) == data


@pytest.mark.parametrize(
    ("shape", "sent"),
    [
        (RESULT, {"a": 1}),
        (RESULT, {"result": 1, "more": 2}),
        (RESULT, [1]),
        (EMPTY, {"a": 1}),
        (SPREAD, [1, 2]),
        (BARE, {"result": 1}),
    ],
)
def test_a_value_that_is_not_wrapped_in_the_shape_is_returned_unchanged(
    shape: Shape, sent: Any
) -> None:
    assert shape.unwrap(sent) == sent


def test_a_wrapped_schema_has_the_definitions_at_its_root() -> None:
    inner = {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object"}}}

    schema = RESULT.wrap_schema(inner)

    assert schema == {
        "type": "object",
        "properties": {"result": {"$ref": "#/$defs/Node"}},
        "required": ["result"],
        "additionalProperties": False,
        "$defs": {"Node": {"type": "object"}},
    }
    assert "$defs" in inner


def test_each_part_of_a_spread_schema_is_required() -> None:
    parts = [{"type": "integer"}, {"type": "string"}]

    schema = SPREAD.wrap_schema({"type": "array", "prefixItems": parts})

    assert schema["properties"] == {"result0": parts[0], "result1": parts[1]}
    assert schema["required"] == ["result0", "result1"]


def test_bare_and_empty_schemas() -> None:
    assert BARE.wrap_schema({"type": "object"}) == {"type": "object"}
    assert EMPTY.wrap_schema({"type": "null"}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
