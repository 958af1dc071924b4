"""JSON text: the accepted depth and encoding, decoding, and the encoder.

The depth limit is fixed, so that it does not depend on how much of the stack is in use.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import KeysView, Mapping, ValuesView
from typing import Any

import msgspec

from .codecs import codec_of_value
from .problems import InvalidJson

MAX_DEPTH = 200
LARGE = 16_384
"""Arguments with more bytes than this are decoded on a separate thread, one at a time.

Smaller ones take less than 50 milliseconds, whatever they contain.
"""
_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
_NOT_VALUES = bytes(set(range(256)) - set(b',[{"'))
_MARKS = b",:[]{}"
_NOT_MARKS = bytes(set(range(256)) - set(_MARKS + b'"'))
_FOLDED = bytes.maketrans(b"123456789E]} \t\r\n", b"000000000e,,,,,,")
"""Turns every digit into a zero, and everything that ends a number into a comma."""
_SLOW_NUMBER = 100
"""How many ordinary numbers msgspec decodes in the time it takes for one like 1e300."""
MAX_SLOW_NUMBERS = 10_000
"""How many numbers like 1e300 a call's arguments may contain."""
_PIECE = 64 * 1024
_FEW_QUOTES = 1_000
_RUN = rb"\[+|\]+"
# An escaped backslash, a complete surrogate pair, or half of one.
_SURROGATES = (
    r"\\\\|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][\da-fA-F]{2})"
)


def is_too_deep(raw: bytes) -> bool:
    """Return whether the text is nested deeper than MAX_DEPTH, in time linear in its length."""
    # The number of opening brackets is an upper bound on the depth.
    if len(raw) <= MAX_DEPTH or not occurs_more_often(raw, (b"[", b"{"), MAX_DEPTH):
        return False
    brackets, levels = _without_strings(raw, _NOT_BRACKETS), 0
    # Only brackets are left, so a container with another one inside starts with two of them.
    # `count` finds at least half of the pairs in a run of brackets.
    if not occurs_more_often(brackets, (b"[[",), MAX_DEPTH // 2 - 1):
        return False
    # Each round removes the innermost level. The loop ends when a round would remove less
    # than a sixteenth: by then the brackets form a few long runs, which are quick to count.
    while len(fewer := brackets.replace(b"[]", b"")) * 16 < len(brackets) * 15:
        brackets, levels = fewer, levels + 1
    depth = levels
    for run in re.finditer(_RUN, brackets):
        start, end = run.span()
        depth += end - start if brackets.startswith(b"[", start) else start - end
        if depth > MAX_DEPTH:
            return True
    return levels > MAX_DEPTH


def with_whole_characters(text: str) -> str:
    """Return JSON with U+FFFD in place of each unpaired surrogate.

    JavaScript writes unpaired surrogates when a string has been cut in the middle of an emoji.
    """
    return re.sub(_SURROGATES, lambda found: r"\ufffd" if found[1] else found[0], text)


def occurs_more_often(raw: bytes, marks: tuple[bytes, ...], limit: int) -> bool:
    """Return whether the marks occur more than *limit* times in total."""
    if len(raw) <= LARGE:
        return sum(map(raw.count, marks)) > limit
    # In large text, `find` is about thirty times as fast as `count`.
    for mark in marks:
        at = raw.find(mark)
        while at >= 0:
            limit -= 1
            if limit < 0:
                return True
            at = raw.find(mark, at + 1)
    return False


def has_more_values(raw: bytes, most: int) -> bool:
    """Return whether the text has more than *most* commas and opening brackets outside strings.

    This counts each item of an array and each member of an object once, and an empty array or
    object once more.
    """
    if len(raw) <= most or raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= most:
        return False
    marks = _without_strings(raw, _NOT_VALUES)
    return marks.count(b",") + marks.count(b"[") > most


def has_more_marks(raw: bytes, most: int) -> bool:
    """Return whether the text has more than *most* commas and colons outside strings.

    An array or object counts as four, because it takes longer to decode than a number, and a
    number such as 1e300 counts as a hundred. Counting takes little memory, however large the
    text is.
    """
    most -= _SLOW_NUMBER * slow_numbers(raw)
    if 2 * len(raw) <= most or 2 * sum(raw.count(mark) for mark in _MARKS) <= most:
        return False
    marks = _without_escapes(raw).translate(None, _NOT_MARKS)
    is_inside = 0
    for start in range(0, len(marks), _PIECE):
        parts = marks[start : start + _PIECE].split(b'"')
        outside = b"".join(parts[is_inside::2])
        most -= len(outside) + 2 * (outside.count(b"[") + outside.count(b"{"))
        if most < 0:
            return True
        is_inside = (is_inside + len(parts) - 1) % 2
    return False


def slow_numbers(raw: bytes) -> int:
    """Return how many numbers in large text have a three-digit exponent.

    A number such as 1e300 takes msgspec ten microseconds, during which it blocks other threads.
    """
    return 0 if len(raw) <= LARGE else raw.translate(_FOLDED, b"+-").count(b"0e000,")


def _without_strings(raw: bytes, left_out: bytes) -> bytes:
    """Return the text without strings or the bytes in *left_out*; braces become square brackets."""
    marks = _without_escapes(raw).translate(_TO_SQUARE, left_out)
    if occurs_more_often(marks, (b'"',), _FEW_QUOTES):
        # Two adjacent quotes have no mark between them, so they can be removed.
        marks = marks.replace(b'""', b"")
    # Every second part between the remaining quotes is inside a string.
    return b"".join(marks.split(b'"')[::2])


def _without_escapes(raw: bytes) -> bytes:
    if b"\\" not in raw:
        return raw
    # Remove escaped backslashes first, so that a backslash before a quote escapes the quote.
    return raw.replace(b"\\\\", b"").replace(b'\\"', b"")


def refuse_bad_text(raw: bytes) -> None:
    """Raise InvalidJson for text that is nested too deeply or is not UTF-8.

    msgspec does not check the text of values that it skips.
    """
    if is_too_deep(raw):
        raise InvalidJson(f"JSON is nested deeper than {MAX_DEPTH} levels")
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidJson(f"JSON is not UTF-8 (byte {error.start})") from None


def load(raw: bytes, **options: Any) -> Any:
    """Decode any JSON; raises InvalidJson, or msgspec.ValidationError for a huge number.

    *options* are passed to `msgspec.json.decode`.
    """
    refuse_bad_text(raw)
    try:
        return msgspec.json.decode(raw, **options)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        raise InvalidJson(str(error)) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidJson(f"JSON cannot be read: {type(error).__name__}") from None


def dump(value: Any, mode: str = "json") -> Any:
    """Serialise a pydantic object using its own class, for values without a declared type."""
    serializer = type(value).__pydantic_serializer__
    return serializer.to_python(value, mode=mode, by_alias=True, warnings=False)


PLAIN_COLLECTIONS = (deque, range, KeysView, ValuesView)
"""Classes that are written as JSON arrays although msgspec does not support them."""


class UnencodableType(TypeError):
    """The value's class has no JSON form."""


def encode_hook(value: Any) -> Any:
    """Return the JSON form of a value that msgspec does not support, or raise UnencodableType."""
    # Call the base class's methods, because a subclass may override them.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if hasattr(value, "__pydantic_serializer__"):
        return dump(value)
    if (codec := codec_of_value(value)) is not None:
        return codec.encode(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, PLAIN_COLLECTIONS):
        return list(value)
    raise UnencodableType(f"{type(value).__name__} has no JSON form")


ENCODER = msgspec.json.Encoder(enc_hook=encode_hook)


def encode_with_nan(value: Any) -> bytes:
    """Encode a value, using the words NaN and Infinity, which pydantic reads but JSON lacks."""
    import json

    plain = msgspec.to_builtins(value, enc_hook=encode_hook, str_keys=True)
    return json.dumps(plain).encode()
