"""The depth limit of JSON text."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerback.types.json_text import LARGE, MAX_DEPTH, has_more_marks, is_too_deep

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
def test_the_depth_limit_is_exact_whatever_the_strings_contain(value: Any, beside: Any) -> None:
    levels = MAX_DEPTH - max(_depth(value), _depth(beside) - 1)
    text = msgspec.json.encode(value)
    for _ in range(levels - 1):
        text = b"[" + text + b"]"
    near = msgspec.json.encode(beside)[1:-1]
    fits = b"[" + text + (b"," + near if near else b"") + b"]"

    assert not is_too_deep(fits)
    if _depth(value) >= _depth(beside) - 1:
        assert is_too_deep(b"[" + fits + b"]")


def test_unclosed_brackets_count_as_depth() -> None:
    assert is_too_deep(b"[" * (MAX_DEPTH + 1))
    assert is_too_deep(b"[]" * 300 + b'{"a":' * (MAX_DEPTH + 1))


MARKED = st.recursive(
    st.text(st.sampled_from(',:[]{}"\\x'), max_size=8) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.sampled_from(',:"\\'), max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def _marks(value: Any) -> int:
    """Count the commas and colons with which JSON writes a value, and four for a container."""
    if isinstance(value, dict):
        return 4 + max(0, 2 * len(value) - 1) + sum(map(_marks, value.values()))
    if isinstance(value, list):
        return 4 + max(0, len(value) - 1) + sum(map(_marks, value))
    return 0


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(MARKED)
def test_marks_are_counted_exactly_whatever_the_strings_contain(value: Any) -> None:
    text = msgspec.json.encode(value)

    assert not has_more_marks(text, _marks(value))
    assert _marks(value) == 0 or has_more_marks(text, _marks(value) - 1)


def test_marks_are_counted_across_the_pieces_of_a_large_text() -> None:
    strings = [",:[]{}" * 3, 'a"b\\', ""] * 40_000
    text = msgspec.json.encode(strings)

    assert not has_more_marks(text, len(strings) + 3)
    assert has_more_marks(text, len(strings) + 2)


LEVELS = MAX_DEPTH - 1
SIZE = 4_000_000


@pytest.mark.parametrize(
    ("text", "too_deep"),
    [
        (b"[" * SIZE, True),
        ((b"[" * LEVELS + b"]" * LEVELS) * (SIZE // 2 // LEVELS), False),
        ((b"[" * 8 + b"]" * 8) * (SIZE // 16), False),
        (b"[" * LEVELS + b"[]," * (SIZE // 3) + b"]" * LEVELS, False),
        (b"[]" * LEVELS + b'"' + b'\\"[' * (SIZE // 3) + b'"', False),
        (b"[]" * LEVELS + b'"' + b"\\\\" * (SIZE // 2) + b'"', False),
    ],
    ids=["open", "nested", "nested a little", "flat inside", "escaped quotes", "backslashes"],
)
def test_the_depth_of_a_large_text_is_found_quickly(text: bytes, too_deep: bool) -> None:
    began = time.process_time()

    assert is_too_deep(text) is too_deep

    assert time.process_time() - began < 0.5


def test_a_number_with_a_large_exponent_counts_as_a_hundred_values() -> None:
    numbers = 5 * ["1e300", "-2.5E+305", "1.7e-308 "]
    text = f"[{','.join(numbers)}]{' ' * LARGE}".encode()
    in_a_string = f'["{" ".join(numbers)}e301"]{" " * LARGE}'.encode()

    assert has_more_marks(text, 100 * len(numbers))
    assert not has_more_marks(text, 101 * len(numbers) + 6)
    assert not has_more_marks(b"[1e30]" + b" " * LARGE, 6)
    assert not has_more_marks(in_a_string, 101 * len(numbers) + 6)
