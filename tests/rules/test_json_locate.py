"""A JSON pointer is found in the bytes of a JSON text, and shown in an excerpt."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from answerback.rules.lint.rewriting import excerpt, locate

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.sampled_from([None, 2]))
def test_every_member_and_item_is_located(value: dict[str, Any], indent: int | None) -> None:
    body = json.dumps(value, indent=indent).encode()

    for name, member in value.items():
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        start, end = locate(body, pointer)
        assert json.loads(body[start:end]) == member
        if isinstance(member, list):
            for index, item in enumerate(member):
                start, end = locate(body, f"{pointer}/{index}")
                assert json.loads(body[start:end]) == item


def test_for_a_missing_member_the_value_around_it_is_located() -> None:
    body = b' {"a": {"b": 1}} '

    assert body[slice(*locate(body, "/a/c"))] == b'{"b": 1}'
    assert body[slice(*locate(body, "/x"))] == body.strip()


def test_an_excerpt_is_one_line_with_the_value_in_it() -> None:
    body = b'{\n  "text": "' + b"x" * 500 + b'"\n}'

    lines_before, text, column, length = excerpt(body, locate(body, "/text"), 40)

    assert lines_before == 1
    assert len(text) <= 40
    assert text[column] == '"'
    assert column + length <= 40
