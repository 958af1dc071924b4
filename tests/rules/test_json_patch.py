"""A patched JSON text has the new values, and keeps every other byte."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.rules.lint.rewriting import patched

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
LAYOUT = st.sampled_from(LAYOUTS)


@given(OBJECT, LAYOUT)
def test_an_unchanged_value_keeps_every_byte(value: Any, layout: dict[str, Any]) -> None:
    body = json.dumps(value, **layout).encode()

    assert patched(body, value) == body


@given(OBJECT, OBJECT, LAYOUT)
def test_the_patched_text_decodes_to_the_new_value(
    old: Any, new: Any, layout: dict[str, Any]
) -> None:
    assert json.loads(patched(json.dumps(old, **layout).encode(), new)) == new


@given(OBJECT, st.text(max_size=3), JSON, LAYOUT)
def test_an_added_member_is_laid_out_like_the_others(
    value: dict[str, Any], name: str, member: Any, layout: dict[str, Any]
) -> None:
    value.pop(name, None)
    old = {"first": {"a": "\u00fc"}, **value}
    new = {**old, name: member}

    written = patched(json.dumps(old, **layout).encode(), new)

    assert written == json.dumps(new, **layout).encode()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["content", "data", "more"])
def test_a_removed_member_leaves_no_gap(layout: dict[str, Any], name: str) -> None:
    old = {"content": [{"type": "text", "text": "\u00fc"}], "data": {"a": 1}, "more": None}
    new = copy.deepcopy(old)
    del new[name]

    written = patched(json.dumps(old, **layout).encode(), new)

    assert written == json.dumps(new, **layout).encode()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_removed_item_leaves_no_gap(layout: dict[str, Any], index: int) -> None:
    old = {"content": [{"text": "a"}, {"text": "b"}, {"text": "\u00fc"}]}
    new = {"content": [each for at, each in enumerate(old["content"]) if at != index]}

    written = patched(json.dumps(old, **layout).encode(), new)

    assert written == json.dumps(new, **layout).encode()


def test_an_odd_layout_is_kept_around_a_change() -> None:
    body = b'{ "content" : [ {"type":"text",  "text":"a\\u00e9"} ] ,\r\n\r\n'
    body += b'"isError":1.50e0,"x":null }'
    new = {"content": [{"type": "text", "text": "a\u00e9"}], "isError": 1.5, "y": True}

    assert patched(body, new) == body.replace(b'"x":null', b'"y": true')


def test_an_object_on_one_line_stays_on_one_line() -> None:
    body = b'{\n  "content": [{"text": "hi"}],\n  "data": 1\n}'
    new = {"content": [{"text": "hi", "type": "text"}], "data": 1}

    assert patched(body, new) == body.replace(b'"hi"', b'"hi", "type": "text"')


def test_json_inside_a_string_does_not_decide_the_layout() -> None:
    body = b'{"text":"{\\"a\\": 1}"}'

    assert patched(body, {"text": '{"a": 1}', "b": 2}) == body.replace(b'"}', b'","b":2}', 1)
