"""What JSON text may be read at all."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from answerback.types.json_text import DEEPEST, is_too_deep

TRICKY = st.recursive(
    st.text(st.sampled_from('[]{}"\\ax\n'), max_size=8) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.sampled_from('[{"\\'), max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(TRICKY, st.lists(TRICKY, max_size=2))
def test_the_depth_is_bounded_exactly_whatever_is_in_the_strings(value: Any, beside: Any) -> None:
    levels = DEEPEST - max(_depth(value), _depth(beside) - 1)
    text = msgspec.json.encode(value)
    for _ in range(levels - 1):
        text = b"[" + text + b"]"
    near = msgspec.json.encode(beside)[1:-1]
    fits = b"[" + text + (b"," + near if near else b"") + b"]"

    assert not is_too_deep(fits)
    if _depth(value) >= _depth(beside) - 1:
        assert is_too_deep(b"[" + fits + b"]")


def test_text_that_never_closes_is_too_deep() -> None:
    assert is_too_deep(b"[" * (DEEPEST + 1))
    assert is_too_deep(b"[]" * 300 + b'{"a":' * (DEEPEST + 1))
