"""JSON values are found in files of every layout, and the pieces joined are the file."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.rules.lint import inputs as json_in_logs
from answerback.rules.lint.inputs import INVALID, NO_VALUE, read_pieces

REPLY = {"content": [{"type": "text", "text": 'a "quoted" {brace} [bracket] \\ and ü'}]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=3), max_size=4)


def values(source: bytes) -> list[Any]:
    return [piece.value for piece in read_pieces(io.BytesIO(source)) if piece.value is not NO_VALUE]


def joined(source: bytes) -> bytes:
    return b"".join(piece.raw for piece in read_pieces(io.BytesIO(source)))


@given(OBJECTS, st.sampled_from([None, 1, 2, "\t"]), st.sampled_from(["\n", "", " ", "\n\n"]))
def test_objects_one_after_another_are_read_in_any_layout(
    objects: list[Any], indent: Any, between: str
) -> None:
    source = between.join(json.dumps(each, indent=indent) for each in objects).encode()

    assert values(source) == objects
    assert joined(source) == source


@given(OBJECTS, st.sampled_from([1, 2, "\t"]))
def test_a_long_array_is_read_item_by_item(objects: list[Any], indent: Any) -> None:
    source = json.dumps(objects, indent=indent).encode() + b"\n"
    found = [piece for piece in read_pieces(io.BytesIO(source)) if piece.value is not NO_VALUE]

    if objects:
        assert [piece.value for piece in found] == objects
        assert [piece.pointer for piece in found] == [f"/{index}" for index in range(len(objects))]
        for piece in found:
            assert json.loads(piece.body) == piece.value
    assert joined(source) == source


@given(OBJECTS)
def test_a_line_longer_than_one_read_is_read_whole(objects: list[Any]) -> None:
    source = json.dumps([REPLY, *objects]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_in_logs, "MAX_READ", 7)

        assert values(source) == [REPLY, *objects]
        assert joined(source) == source


def test_a_piece_has_the_line_that_its_value_begins_in() -> None:
    source = b'{"a":1}\n\n{\n "b": 2\n}\nnoise\n[\n {"c":\n 3},\n\n {"d":4}\n]\n{"e":5}\n'

    found = [
        (piece.value, piece.line)
        for piece in read_pieces(io.BytesIO(source))
        if piece.value is not NO_VALUE
    ]

    assert found == [({"a": 1}, 1), ({"b": 2}, 3), ({"c": 3}, 8), ({"d": 4}, 11), ({"e": 5}, 13)]


def test_json_is_found_in_the_lines_of_a_log() -> None:
    source = b'12:00 [info] <- {"id":1} { metadata: undefined }\nnothing {here}\ndata: {"id":2}\n'

    assert values(source) == [{"id": 1}, {"id": 2}]
    assert joined(source) == source


@pytest.mark.parametrize(
    "line", [b'{"a":' * 50_000, b"{x" * 50_000 + b"}" * 50_000, b'{"' * 50_000, b"{" * 200_000]
)
@pytest.mark.parametrize("before", [b"", b"x "])
def test_a_line_of_many_braces_is_read_quickly(line: bytes, before: bytes) -> None:
    started = time.process_time()

    found = values(before + line + b' {"content": []}\n')

    assert INVALID in found or {"content": []} in found
    assert time.process_time() - started < 5


WORDS = st.text(alphabet="ab: -<>[]}{'", max_size=6)


@given(st.lists(st.tuples(WORDS, st.just(REPLY) | st.just({"success": True})), min_size=1))
def test_every_object_in_a_line_is_found_or_the_line_is_invalid(
    parts: list[tuple[str, dict[str, Any]]],
) -> None:
    source = "".join(words + json.dumps(reply) for words, reply in parts).encode() + b" end\n"

    found = values(source)

    assert joined(source) == source
    assert INVALID in found or [each for _, each in parts] == found


@pytest.mark.parametrize("source", [b'{"a":', b'{"a":1,}\n', b'[{"a":1},\n{"b":'])
def test_unfinished_or_malformed_json_is_invalid(source: bytes) -> None:
    assert values(source)[-1] is INVALID
    assert joined(source) == source


def test_a_new_body_replaces_the_value_of_a_piece_and_nothing_else() -> None:
    source = b'12:00 <- {"id":1} { metadata: undefined }\n'
    (piece,) = read_pieces(io.BytesIO(source))

    assert piece.with_body(b"{}") == b"12:00 <- {} { metadata: undefined }\n"
