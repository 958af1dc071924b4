"""Scalars in JSON: their strings' pattern, the value that a string stands for, the limits.

The patterns mean the same in ECMA-262, Python's re and RE2: no look-around, ASCII digits only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Annotated, Any
from uuid import UUID

import msgspec

from .nodes import BYTES_TYPES, NO_LIMITS, Scalar, ValueLimits, is_loose_in_msgspec

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?"
# The date pattern is exact: no year 0, no 31st of April, a 29th of February only in leap years.
_YEAR = r"(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_MULTIPLE_OF_FOUR = r"(0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"([0-9]{{2}}{_MULTIPLE_OF_FOUR}|{_MULTIPLE_OF_FOUR}00)"
_MONTH_AND_DAY = (
    r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
    r"|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_DAY = rf"({_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
# msgspec accepts an offset without its colon; RFC 3339 does not.
_LOOSE_OFFSET = r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
_OFFSET = r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
# A timedelta can hold any eight digits of each unit.
_SECONDS = r"[0-9]{1,8}(\.[0-9]{1,9})?S"
_TIME_PART = rf"([0-9]{{1,8}}H([0-9]{{1,8}}M)?({_SECONDS})?|[0-9]{{1,8}}M({_SECONDS})?|{_SECONDS})"

_PATTERNS: dict[type, str] = {
    date: rf"^{_DAY}$",
    UUID: r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$",
    timedelta: rf"^-?P([0-9]{{1,8}}D(T{_TIME_PART})?|T{_TIME_PART})$",
    Decimal: r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?$",
    bytes: r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
# By the type and its `tz` limit.
_TIME_PATTERNS: dict[tuple[type, bool | None], str] = {
    (datetime, None): rf"^{_DAY}[Tt ]{_CLOCK}{_LOOSE_OFFSET}?$",
    (datetime, True): rf"^{_DAY}[Tt]{_CLOCK}{_OFFSET}$",
    (datetime, False): rf"^{_DAY}[Tt ]{_CLOCK}$",
    (time, None): rf"^{_CLOCK}{_LOOSE_OFFSET}?$",
    (time, True): rf"^{_CLOCK}{_OFFSET}$",
    (time, False): rf"^{_CLOCK}$",
}
_FORMAT_HINTS: dict[tuple[type, bool | None], str] = {
    (datetime, None): "write it like 2026-01-31T12:00:00Z",
    (datetime, False): "write it like 2026-01-31T12:00:00",
    (date, None): "write it like 2026-01-31",
    (time, None): "write it like 12:00:00",
    (time, True): "write it like 12:00:00Z",
    (timedelta, None): "write it like PT1H30M",
    (UUID, None): "write it like 00000000-0000-4000-8000-000000000000",
    **{(kind, None): "write it in base64" for kind in BYTES_TYPES},
}
_FORMATS = {datetime: "date-time", time: "time", timedelta: "duration"}
# JSON Schema's formats are RFC 3339's: times have an offset, durations no fractions. Types
# that allow other values are described in words.
_TIME_TEXTS: dict[tuple[type, bool | None], str] = {
    (datetime, None): "ISO 8601 date and time, with or without an offset",
    (datetime, False): "ISO 8601 date and time without an offset",
    (time, None): "ISO 8601 time, with or without an offset",
    (time, False): "ISO 8601 time without an offset",
    (timedelta, None): "ISO 8601 duration",
}


def format_keyword(node: Scalar, mode: str) -> dict[str, str]:
    """Return the `format` for a date, time or duration, or a `description` if none is right."""
    kind = node.kind
    # An argument in the format's narrower form is always accepted, a result may have others.
    if node.limits.tz or (kind is timedelta and mode == "validation"):
        return {"format": _FORMATS[kind]}
    return {"description": _TIME_TEXTS[kind, node.limits.tz]}


def join_descriptions(own: str, of_type: str | None) -> str:
    """Return the author's description, followed by this module's words for a type."""
    is_ours = of_type in _TIME_TEXTS.values()
    return f"{own} ({of_type})" if is_ours else own


def format_in_words(description: str | None) -> str | None:
    """Return the format that this module's words in a description stand for."""
    found = (
        _FORMATS[kind] for (kind, _), text in _TIME_TEXTS.items() if text in (description or "")
    )
    return next(found, None)


def pattern_of(kind: type, limits: ValueLimits) -> str | None:
    """Return the pattern of the strings that stand for *kind*; None for free text."""
    if kind in BYTES_TYPES:
        kind = bytes
    return _TIME_PATTERNS.get((kind, limits.tz)) or _PATTERNS.get(kind)


def format_hint(node: Scalar, value: Any) -> str | None:
    """Return how to write values of *node*, if *value* does not match its pattern."""
    hint = _FORMAT_HINTS.get((node.kind, node.limits.tz)) or _FORMAT_HINTS.get((node.kind, None))
    return None if hint is None or _matches_pattern(node, value) else hint


def read_scalar(node: Scalar, value: Any) -> Any:
    """Return the typed value for decoded JSON; raise ValueError if it does not fit."""
    if is_loose_in_msgspec(node) and not _matches_pattern(node, value):
        raise ValueError("does not match its pattern")
    base: Any = (
        Annotated[node.kind, msgspec.Meta(tz=node.limits.tz)] if node.limits.tz else node.kind
    )
    typed = msgspec.convert(value, base)
    if not _is_within(node.limits, typed):
        raise ValueError("exceeds its limits")
    return typed


def _matches_pattern(node: Scalar, value: Any) -> bool:
    if node.kind is Decimal and type(value) in (int, float):
        return True
    pattern = pattern_of(node.kind, node.limits)
    # fullmatch, because `$` in Python's re also matches before a newline at the end.
    return isinstance(value, str) and bool(_compiled(pattern).fullmatch(value))


@cache
def _compiled(pattern: str | None) -> re.Pattern[str]:
    return re.compile(pattern or "")


def _has_match(value: str, pattern: str) -> bool:
    from .patterns import searcher

    return searcher(pattern)(value) is not None


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "ge": lambda value, limit: value >= limit,
    "gt": lambda value, limit: value > limit,
    "le": lambda value, limit: value <= limit,
    "lt": lambda value, limit: value < limit,
    "multiple_of": lambda value, limit: value % type(value)(limit) == 0,
    "min_length": lambda value, limit: len(value) >= limit,
    "max_length": lambda value, limit: len(value) <= limit,
    "pattern": _has_match,
    "tz": lambda value, limit: (value.tzinfo is not None) == limit,
}


def _is_within(limits: ValueLimits, value: Any) -> bool:
    if limits is NO_LIMITS:
        return True
    try:
        compared = all(_COMPARE[name](value, limit) for name, limit in limits.as_dict().items())
        return compared and all(check(value) for check in limits.checks)
    except (TypeError, ValueError, ArithmeticError):
        # A naive time was compared with an aware one, or a predicate raised.
        return False
