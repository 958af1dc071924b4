"""Numbers and strings with a form of their own: what JSON text stands for each.

The patterns hold in ECMA-262, Python's re and RE2 alike: no look-around, ASCII digits.
"""

import math
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Annotated, Any
from uuid import UUID

import msgspec

from .nodes import NO_LIMITS, Limits, Scalar

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?"
# Long, and exact: no year 0, no 31st of April, and the 29th of February in leap years alone.
_YEAR = r"(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_BY_FOUR = r"(0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"([0-9]{{2}}{_BY_FOUR}|{_BY_FOUR}00)"
_IN_MONTH = (
    r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
    r"|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_DAY = rf"({_YEAR}-{_IN_MONTH}|{_LEAP_YEAR}-02-29)"
# msgspec takes an offset without its colon; RFC 3339 does not.
_LOOSE_OFFSET = r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
_OFFSET = r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
# Eight digits of each unit always fit a timedelta.
_SECONDS = r"[0-9]{1,8}(\.[0-9]{1,9})?S"
_IN_A_DAY = rf"([0-9]{{1,8}}H([0-9]{{1,8}}M)?({_SECONDS})?|[0-9]{{1,8}}M({_SECONDS})?|{_SECONDS})"

PATTERNS: dict[type, str] = {
    date: rf"^{_DAY}$",
    UUID: r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$",
    timedelta: rf"^-?P([0-9]{{1,8}}D(T{_IN_A_DAY})?|T{_IN_A_DAY})$",
    Decimal: r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?$",
    bytes: r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
_TIMES: dict[tuple[type, bool | None], str] = {
    (datetime, None): rf"^{_DAY}[Tt ]{_CLOCK}{_LOOSE_OFFSET}?$",
    (datetime, True): rf"^{_DAY}[Tt]{_CLOCK}{_OFFSET}$",
    (datetime, False): rf"^{_DAY}[Tt ]{_CLOCK}$",
    (time, None): rf"^{_CLOCK}{_LOOSE_OFFSET}?$",
    (time, True): rf"^{_CLOCK}{_OFFSET}$",
    (time, False): rf"^{_CLOCK}$",
}
_ADVICE: dict[tuple[type, bool | None], str] = {
    (datetime, None): "write it like 2026-01-31T12:00:00Z",
    (datetime, False): "write it like 2026-01-31T12:00:00",
    (date, None): "write it like 2026-01-31",
    (time, None): "write it like 12:00:00",
    (time, True): "write it like 12:00:00Z",
    (timedelta, None): "write it like PT1H30M",
    (UUID, None): "write it like 00000000-0000-4000-8000-000000000000",
    (bytes, None): "write it in base64",
    (bytearray, None): "write it in base64",
}
# What msgspec reads more loosely than the schema can say.
_LOOSE = frozenset({UUID, timedelta, Decimal})


_FORMS = {datetime: "date-time", time: "time"}


def form_of_pattern(pattern: str | None) -> str | None:
    """What a pattern of ours stands for, in the words that JSON Schema has for formats."""
    if pattern == PATTERNS[timedelta]:
        return "duration"
    found = (_FORMS[kind] for (kind, _), each in _TIMES.items() if each == pattern)
    return next(found, None)


def pattern_of(kind: type, limits: Limits) -> str | None:
    """The form of the string that stands for *kind*, if it is not free text."""
    if kind is bytearray:
        kind = bytes
    return _TIMES.get((kind, limits.tz)) or PATTERNS.get(kind)


def advice(node: Scalar, value: Any) -> str | None:
    """How to write what *node* stands for, if *value* is not in its form."""
    form = _ADVICE.get((node.kind, node.limits.tz)) or _ADVICE.get((node.kind, None))
    return None if form is None or _in_form(node, value) else form


def is_loose(node: Scalar) -> bool:
    """Whether msgspec takes strings for it that its schema refuses."""
    return node.kind in _LOOSE or (node.kind in (datetime, time) and node.limits.tz is True)


def meta_type(node: Scalar) -> Any:
    """The scalar in msgspec's own words, or None where those do not reach."""
    limits = node.limits
    given = limits.given()
    if limits.checks or not _within_meta(node.kind, given):
        return None
    if node.kind is int:
        given = {name: _whole(name, limit) for name, limit in given.items()}
    return Annotated[node.kind, msgspec.Meta(**given)] if given else node.kind


def _within_meta(kind: type, given: dict[str, Any]) -> bool:
    if kind is int:
        return all(-(2**62) < limit < 2**62 for limit in given.values())
    return kind in (float, str, bytes, bytearray) or given.keys() <= {"tz"}


def _whole(name: str, limit: Any) -> int:
    whole: int = math.ceil(limit) if name in ("ge", "lt") else math.floor(limit)
    return whole


def read_scalar(node: Scalar, value: Any) -> Any:
    """The typed value of decoded JSON; raises ValueError if it does not fit."""
    if is_loose(node) and not _in_form(node, value):
        raise ValueError("not in its form")
    base: Any = (
        Annotated[node.kind, msgspec.Meta(tz=node.limits.tz)] if node.limits.tz else node.kind
    )
    typed = msgspec.convert(value, base)
    if not meets(typed, node.limits):
        raise ValueError("not within its limits")
    return typed


def _in_form(node: Scalar, value: Any) -> bool:
    if node.kind is Decimal and type(value) in (int, float):
        return True
    pattern = pattern_of(node.kind, node.limits)
    # fullmatch, because `$` in Python's re also matches before a last newline.
    return isinstance(value, str) and bool(_compiled(pattern).fullmatch(value))


@cache
def _compiled(pattern: str | None) -> re.Pattern[str]:
    return re.compile(pattern or "")


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "ge": lambda value, limit: value >= limit,
    "gt": lambda value, limit: value > limit,
    "le": lambda value, limit: value <= limit,
    "lt": lambda value, limit: value < limit,
    "multiple_of": lambda value, limit: value % type(value)(limit) == 0,
    "min_length": lambda value, limit: len(value) >= limit,
    "max_length": lambda value, limit: len(value) <= limit,
    "pattern": lambda value, limit: re.search(limit, value) is not None,
    "tz": lambda value, limit: (value.tzinfo is not None) == limit,
}


def meets(value: Any, limits: Limits) -> bool:
    """Whether a typed value keeps within *limits*."""
    if limits is NO_LIMITS:
        return True
    try:
        compared = all(_COMPARE[name](value, limit) for name, limit in limits.given().items())
        return compared and all(check(value) for check in limits.checks)
    except (TypeError, ValueError, ArithmeticError):
        # Naive with aware, a predicate that chokes: not a value it was made for.
        return False
