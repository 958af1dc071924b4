"""Ranges of any reply: put together they are the whole, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.errors import InvalidInput
from answerback.fitting.ranges import ReplyPart, part_of, range_of
from answerback.fitting.reply_store import range_uri

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = TEXTS.filter(bool)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=10,
)


def _ranges(body: bytes, path: str, step: int, **unit: Any) -> list[str]:
    found: list[str] = []
    offset = 0
    while True:
        part = range_of(body, ReplyPart(path=path, offset=offset, limit=step, **unit))
        found.append(part.text)
        offset += part.returned
        if offset == part.total:
            return found


@given(st.lists(VALUES), NAMES, st.integers(1, 5))
def test_the_ranges_of_a_list_have_the_same_bytes(items: list[Any], name: str, step: int) -> None:
    encoded = [json.dumps(item) for item in items]
    body = f'{{"other": 1, {json.dumps(name)}: [{",".join(encoded)}]}}'.encode()

    ranges = _ranges(body, name, step)

    assert ",".join(each[1:-1] for each in ranges) == ",".join(encoded)
    assert all(len(json.loads(each)) == step for each in ranges[:-1])


@given(TEXTS, st.integers(1, 5), st.sampled_from(["lines", "characters"]))
def test_the_ranges_of_a_text_are_the_text(text: str, step: int, unit: str) -> None:
    body = json.dumps({"user": [{"posts": text}]}).encode()

    ranges = _ranges(body, "user.0.posts", step, unit=unit)

    assert "".join(ranges) == text
    if unit == "lines":
        assert all(each.count("\n") == step for each in ranges[:-1])


@given(TEXTS, st.integers(0, 10**15 - 1), st.none() | st.integers(1, 10**15 - 1))
def test_the_uri_of_a_range_names_it(path: str, offset: int, limit: int | None) -> None:
    part = ReplyPart(path=path, offset=offset, limit=limit, unit="lines")

    uri = range_uri("answerback://replies/id", part)

    assert part_of(uri.partition("?")[2]) == part


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b", '"dotted"'),
        ("a", '{"b":"nested"}'),
        ("a.b.c", "3"),
        ("list.1", "2.50"),
        ("list.1.x", None),
        ("list.3", None),
        ("list.01x", None),
        ("b", None),
    ],
)
def test_a_path_finds_members_and_items_also_if_a_name_has_dots(
    path: str, expected: str | None
) -> None:
    body = b'{"a.b":"dotted","a":{"b":"nested"},"a.b.c":3,"list":[1,2.50,3]}'

    if expected is None:
        with pytest.raises(InvalidInput, match="nothing at path"):
            range_of(body, ReplyPart(path=path))
    else:
        found = range_of(body, ReplyPart(path=path))
        assert found.text in (expected, json.loads(expected))


def test_a_reply_that_is_one_text_is_read_as_json_and_in_ranges_as_text() -> None:
    body = json.dumps("one\ntwo").encode()

    whole, lines = range_of(body, ReplyPart()), range_of(body, ReplyPart(offset=1, unit="lines"))

    assert (whole.text, whole.mime) == ('"one\\ntwo"', "application/json")
    assert (lines.text, lines.mime) == ("two", "text/plain")
