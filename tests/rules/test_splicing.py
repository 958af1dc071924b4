"""What is repaired keeps the shape that it had."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.rules.lint.json_patch import spliced

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
OBJECT = st.dictionaries(st.text(max_size=3), JSON, max_size=4)
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"indent": 2},
    {"indent": 4, "ensure_ascii": False},
    {"indent": "\t"},
]
EACH = st.sampled_from(LAYOUTS)


@given(OBJECT, EACH)
def test_what_is_not_changed_is_the_same_to_the_byte(value: Any, layout: dict[str, Any]) -> None:
    body = json.dumps(value, **layout).encode()

    assert spliced(body, value) == body


@given(OBJECT, OBJECT, EACH)
def test_whatever_is_changed_the_json_says_the_new(
    old: Any, new: Any, layout: dict[str, Any]
) -> None:
    assert json.loads(spliced(json.dumps(old, **layout).encode(), new)) == new


@given(OBJECT, st.text(max_size=3), JSON, EACH)
def test_what_is_added_at_the_end_is_laid_out_like_the_rest(
    value: dict[str, Any], name: str, member: Any, layout: dict[str, Any]
) -> None:
    value.pop(name, None)
    old = {"first": {"a": "\u00fc"}, **value}
    new = {**old, name: member}

    written = spliced(json.dumps(old, **layout).encode(), new)

    assert written == json.dumps(new, **layout).encode()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["content", "data", "more"])
def test_what_is_taken_out_leaves_no_gap(layout: dict[str, Any], name: str) -> None:
    old = {"content": [{"type": "text", "text": "\u00fc"}], "data": {"a": 1}, "more": None}
    new = copy.deepcopy(old)
    del new[name]

    written = spliced(json.dumps(old, **layout).encode(), new)

    assert written == json.dumps(new, **layout).encode()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_item_that_is_taken_out_leaves_no_gap(layout: dict[str, Any], index: int) -> None:
    old = {"content": [{"text": "a"}, {"text": "b"}, {"text": "\u00fc"}]}
    new = {"content": [each for at, each in enumerate(old["content"]) if at != index]}

    written = spliced(json.dumps(old, **layout).encode(), new)

    assert written == json.dumps(new, **layout).encode()


def test_an_odd_layout_is_kept_around_a_change() -> None:
    body = b'{ "content" : [ {"type":"text",  "text":"a\\u00e9"} ] ,\r\n\r\n'
    body += b'"isError":1.50e0,"x":null }'
    new = {"content": [{"type": "text", "text": "a\u00e9"}], "isError": 1.5, "y": True}

    assert spliced(body, new) == body.replace(b'"x":null', b'"y": true')


def test_what_stands_in_one_line_stays_in_one_line() -> None:
    body = b'{\n  "content": [{"text": "hi"}],\n  "data": 1\n}'
    new = {"content": [{"text": "hi", "type": "text"}], "data": 1}

    assert spliced(body, new) == body.replace(b'"hi"', b'"hi", "type": "text"')


def test_json_in_a_text_does_not_tell_how_the_json_around_it_is_laid_out() -> None:
    body = b'{"text":"{\\"a\\": 1}"}'

    assert spliced(body, {"text": '{"a": 1}', "b": 2}) == body.replace(b'"}', b'","b":2}', 1)
