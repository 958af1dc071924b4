"""Reads strings in a value that pydantic's lax mode refused: JSON of arrays and objects, and null.

Lax mode itself reads strings of numbers and booleans.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from .lenient import container_in, is_null, read_text

# Each string that is read makes pydantic validate the whole value again.
_LONG_JSON = 32_768


def with_texts_read(value: Any, problems: list[Any]) -> Any:
    """Return a copy with the values that refused strings stand for, or *value* itself."""
    found = [(each["loc"], each["input"], _read(each)) for each in problems]
    readable = [each for each in found if each[2] is not _UNREAD]
    if not readable:
        return value
    if isinstance(value, str):
        return readable[0][2]
    encoded = msgspec.json.encode(value)
    if len(encoded) > _LONG_JSON:
        return value
    copied = msgspec.json.decode(encoded)
    changed = [_replace_at(copied, loc, text, read) for loc, text, read in readable]
    return copied if any(changed) else value


_UNREAD = object()


def _read(problem: Any) -> Any:
    """Return the value that the refused string stands for, or `_UNREAD`."""
    text, kind = problem["input"], problem["type"]
    if not isinstance(text, str) or kind not in _READERS:
        return _UNREAD
    read = _READERS[kind](text)
    if read is None and not (kind in _NULLS and is_null(text)):
        return _UNREAD
    return read


def _container(kind: type, text: str) -> Any:
    inside = container_in(text)
    return inside if isinstance(inside, kind) else None


def _choice(text: str) -> Any:
    found = (read_text(kind, text) for kind in (bool, int, float))
    return next((each for each in found if each is not None), None)


_ARRAYS = ("list_type", "tuple_type", "set_type", "frozen_set_type")
_OBJECTS = ("dict_type", "model_type", "model_attributes_type", "dataclass_type", "mapping_type")
_READERS: dict[str, Callable[[str], Any]] = {
    "literal_error": _choice,
    "enum": _choice,
    "none_required": lambda text: None,
    **dict.fromkeys(
        ("list_type", "tuple_type", "set_type", "frozen_set_type"), partial(_container, list)
    ),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "dataclass_type", "mapping_type"),
        partial(_container, dict),
    ),
}
_NULLS = frozenset({"none_required", "literal_error"})


def _replace_at(container: Any, loc: tuple[int | str, ...], old: Any, new: Any) -> bool:
    """Replace *old* at *loc* by *new*; return whether it was there."""
    # A location also has the names of union members, which are not keys of the value.
    for n, key in enumerate(loc):
        inside = _get(container, key)
        if inside == old and type(inside) is type(old) and n >= len(loc) - 2:
            container[key] = new
            return True
        container = container if inside is None else inside
    return False


def _get(container: Any, key: int | str) -> Any:
    try:
        return container[key]
    except (KeyError, IndexError, TypeError):
        return None
