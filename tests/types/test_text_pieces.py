"""JSON text that is decoded in pieces gives the same value, or the same refusal, as in one go."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.types.arguments import Arguments, Parameter
from answerback.types.json_text import load
from answerback.types.problems import InvalidArguments, InvalidJson
from answerback.types.text_pieces import NumberOutOfRange, load_in_pieces

MANY = 60_000
# Characters that have a meaning outside of strings.
TEXTS = st.text(st.sampled_from('a,:"\\[]{}é\n'), max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inside: st.lists(inside) | st.dictionaries(TEXTS, inside),
    max_leaves=40,
)
SIZES = st.integers(1, 60)
SPACES = st.sampled_from([None, 0, 1])


def outcome(decode: Any) -> tuple[str, Any]:
    try:
        return "value", decode()
    except InvalidJson:
        return "refused", InvalidJson
    except (msgspec.ValidationError, NumberOutOfRange):
        return "refused", NumberOutOfRange


@given(VALUES, SIZES, SPACES, st.booleans())
def test_pieces_of_any_size_are_decoded_to_the_same_value(
    value: Any, size: int, indent: int | None, ascii_only: bool
) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()

    assert load_in_pieces(raw, size) == msgspec.json.decode(raw)


@given(VALUES, SIZES, st.data())
def test_malformed_text_is_refused_in_pieces_too(value: Any, size: int, data: Any) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.sampled_from([*',:"[]{}\\ 1', "NaN", ""]))
    cut = data.draw(st.integers(0, 1))
    raw = (text[:at] + inserted + text[at + cut :]).encode()

    assert outcome(lambda: load_in_pieces(raw, size)) == outcome(lambda: load(raw))


@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize(
    "text",
    [
        '{"a":[1],"b":2,"a":[3,4,5]}',
        '{"b":{"a":1,"c":[1,2],"a":{"x":1,"y":2}},"b":{"z":[1,2,3]},"d":4}',
        '[{"a":[1,2],"b":[3,4],"a":[5,6]},7]',
    ],
)
def test_the_last_of_two_equal_keys_counts_in_pieces_too(text: str, size: int) -> None:
    pieces = load_in_pieces(text.encode(), size)

    assert pieces == json.loads(text)
    assert json.dumps(pieces) == json.dumps(msgspec.json.decode(text))


@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize(
    "text", ["[1,]", '{"a":1,}', "[,1]", "[1,,2]", "[1],[2]", "[1],", "[[1},2]"]
)
def test_a_comma_too_many_is_refused_at_its_place(text: str, size: int) -> None:
    with pytest.raises(InvalidJson) as in_one_go:
        load(text.encode())

    with pytest.raises(InvalidJson) as in_pieces:
        load_in_pieces(text.encode(), size)

    assert str(in_pieces.value) == str(in_one_go.value)


@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"a":1,"b":[1,2,[3,1e999],4],"c":2}', ["b"]),
        ('{"a":[1,2],"b":1e999}', ["b"]),
        ("[1,2,1e999]", []),
    ],
)
def test_the_argument_with_a_number_out_of_range_is_named(
    text: str, names: list[str], size: int
) -> None:
    with pytest.raises(NumberOutOfRange) as caught:
        load_in_pieces(text.encode(), size)

    assert caught.value.names == names


def nested(value: Any, levels: int) -> Any:
    return value if not levels else [nested(value, levels - 1)]


LARGE: dict[str, Any] = {
    "a wide array": [{}] * MANY,
    "a wide array in a narrow one": [[1], [{}] * MANY, "a"],
    "a very wide array in narrow ones": [[[[{}] * 3 * MANY, 1]]],
    "wide arrays in objects": {"a": {"b": [1] * MANY, "c": [[]] * MANY}},
    "a wide object in an array": [{f"n{n}": n for n in range(2 * MANY)}],
    "many small objects in an array in an array": [[{"a": [1, "b"]}] * 2 * MANY],
    "deep": nested([1] * MANY, 190),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("indent", [None, 0])
def test_a_large_argument_has_the_value_that_was_sent(name: str, indent: int | None) -> None:
    arguments = Arguments([Parameter(name="x", annotation=Any)])

    sent = json.dumps({"x": LARGE[name]}, indent=indent).encode()

    assert arguments.decode(sent)["x"] == LARGE[name]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("]", "truncated"),
        (",]]}", "trailing comma"),
        ("]]}}", "trailing characters"),
        (" 1]]}", "expected ',' or ']'"),
        ("}]}", "expected ',' or ']'"),
    ],
)
def test_malformed_large_arguments_are_refused_with_the_place(end: str, reason: str) -> None:
    raw = b'{"x":[[' + b"{}," * MANY + b"1" + end.encode()

    with pytest.raises(InvalidJson, match=reason):
        Arguments([Parameter(name="x", annotation=Any)]).decode(raw)


def test_a_large_argument_with_a_number_out_of_range_is_refused_by_its_name() -> None:
    raw = b'{"y":1,"x":[[' + b"{}," * MANY + b"1e999]]}"

    with pytest.raises(InvalidArguments) as caught:
        Arguments([Parameter(name="x", annotation=Any)]).decode(raw)

    assert [str(problem) for problem in caught.value.problems] == ["x: number out of range"]


def test_large_text_that_is_no_object_is_refused() -> None:
    raw = b"[" + b"{}," * MANY + b"1]"

    with pytest.raises(InvalidArguments, match="expected an object of arguments, got array"):
        Arguments([Parameter(name="x", annotation=Any)]).decode(raw)


def test_a_large_argument_of_any_type_stays_whole_beside_one_that_is_repaired() -> None:
    data = [[{"a": [1]}] * MANY]
    arguments = Arguments(
        [
            Parameter(name="x", annotation=list[dict[str, Any]]),
            Parameter(name="n", annotation=list[int]),
        ]
    )
    sent = json.dumps({"x": [{"a": data}], "n": [1.0]}).encode()

    assert arguments.decode(sent) == {"x": [{"a": data}], "n": [1]}
