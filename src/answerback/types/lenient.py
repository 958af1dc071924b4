"""The complete table of strings that are read as another JSON value, if the type allows no string.

Language models send numbers, booleans, arrays and objects as text. `docs/start/tools.md` has the
table.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from .json_text import has_more_values, load
from .problems import Coercion, InvalidJson

# Not compiled here, because only a string in a number's place needs it.
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_BOOLEANS = {"true": True, "false": False}
# Nobody means longer numbers, and they take long to read.
_MAX_DIGITS = 400
# No model sends a text with more values.
_MAX_VALUES = 50_000


def read_text(kind: type, text: str) -> bool | int | float | None:
    """Return the number or boolean of *kind* that *text* is in JSON, or None."""
    text = text.strip()
    if kind is bool:
        return _BOOLEANS.get(text.lower())
    if kind not in (int, float) or len(text) > _MAX_DIGITS or not re.fullmatch(_NUMBER, text):
        return None
    if kind is int and text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return None
    if kind is float:
        return number
    return int(number) if number.is_integer() else None


def is_null(text: str) -> bool:
    """Return whether *text* is `null`."""
    return text.strip().lower() == "null"


def is_text_of(choice: Any, text: str) -> bool:
    """Return whether *text* stands for *choice*, a Literal's or an Enum's value."""
    if choice is None:
        return is_null(text)
    return not isinstance(choice, str) and read_text(type(choice), text) == choice


def unpack(value: Any, coercion: Coercion) -> Any:
    """Return the array or object that a string is in JSON, or *value* itself.

    The same string gives the same object again, so that a union tries each object once.
    """
    if not coercion.lenient or not isinstance(value, str):
        return value
    if not value.lstrip().startswith(("[", "{")):
        return value
    unpacked = coercion.texts.unpacked
    if id(value) not in unpacked:
        if not coercion.texts.take():
            return value
        # The string is kept so that no other gets its id.
        unpacked[id(value)] = (value, container_in(value))
    inside = unpacked[id(value)][1]
    return value if inside is None else inside


def container_in(text: str) -> list[Any] | dict[str, Any] | None:
    """Return the array or object that *text* is in JSON, or None, also for one with many values."""
    raw = text.encode("utf-8", "surrogatepass")
    try:
        inside = None if has_more_values(raw, _MAX_VALUES) else load(raw)
    except (InvalidJson, msgspec.ValidationError):
        return None
    return inside if isinstance(inside, list | dict) else None
