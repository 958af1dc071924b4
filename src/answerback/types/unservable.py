"""Explains why a type cannot be served, and what to write instead."""

from __future__ import annotations

import collections
import collections.abc as abc
import typing
from typing import Any

from ..core.content import block_class
from .problems import name_of

_READ_ONCE = "can be read only once; write list[...]"
_REASONS: dict[Any, str] = {
    abc.Callable: "is code, not data; write str and look the function up by name",
    type: "is a class, not data; write str and look the class up by name",
    complex: "is not a JSON number; write tuple[float, float]",
    abc.Iterator: _READ_ONCE,
    abc.Iterable: "does not name its container; write list[...]",
    abc.Generator: _READ_ONCE,
    abc.AsyncIterator: _READ_ONCE,
    abc.AsyncIterable: _READ_ONCE,
    abc.AsyncGenerator: _READ_ONCE,
    abc.Awaitable: "is not the value yet; write the type of the value",
    abc.Coroutine: "is not the value yet; write the type of the value",
    collections.deque: "is not known to JSON; write list[...]",
    collections.defaultdict: "is not known to JSON; write dict[str, ...]",
    collections.OrderedDict: "is not known to JSON; write dict[str, ...]",
    collections.Counter: "is not known to JSON; write dict[str, int]",
    range: "is not known to JSON; write list[int]",
    typing.NoReturn: "has no values; write None",
    typing.Never: "has no values; write None",
}
_WITH_RECIPES = frozenset({"pandas", "polars", "numpy", "PIL"})
_FILE_TYPES = frozenset({"IO", "TextIO", "BinaryIO"})


def explain_unservable(annotation: Any) -> str:
    """Return why *annotation* cannot be served, and what to write instead."""
    origin = typing.get_origin(annotation) or annotation
    name = name_of(annotation)
    try:
        reason = _REASONS.get(origin)
    except TypeError:  # an annotation that is not hashable
        reason = None
    if reason is not None:
        return f"{name} {reason}"
    if getattr(origin, "__name__", "") in _FILE_TYPES or hasattr(origin, "readline"):
        return f"{name} is an open file; write bytes or str for what is in it"
    for base in (str, bytes, int, float, list, dict, set, tuple):
        if isinstance(origin, type) and issubclass(origin, base):
            kind = base.__name__
            return f"{name} is a kind of {kind} that JSON does not know; write {kind}"
    if isinstance(origin, type) and block_class(origin) is not None:
        return f"{name} is a content block, which only results have; write bytes"
    if getattr(origin, "__module__", "").partition(".")[0] in _WITH_RECIPES:
        return (
            f"{name} has no JSON form; register it with register_type: "
            "docs/guides/own-types.md has a recipe"
        )
    return (
        f"{name} is not a type that JSON knows; "
        "make it a dataclass, write str, or register it with register_type"
    )
