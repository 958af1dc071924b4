"""What to say about a type that cannot be served: why, and what to write instead."""

import collections
import collections.abc as abc
import typing
from typing import Any

_ONE_BY_ONE = "is read only once; write list[...]"
_INSTEAD: dict[Any, str] = {
    abc.Callable: "is code, not data; write str and look the function up by name",
    type: "is a class, not data; write str and look the class up by name",
    complex: "is no JSON number; write tuple[float, float]",
    abc.Iterator: _ONE_BY_ONE,
    abc.Iterable: "does not say how it is kept; write list[...]",
    abc.Generator: _ONE_BY_ONE,
    abc.AsyncIterator: _ONE_BY_ONE,
    abc.AsyncIterable: _ONE_BY_ONE,
    abc.AsyncGenerator: _ONE_BY_ONE,
    abc.Awaitable: "is not the value yet; write the type of the value",
    abc.Coroutine: "is not the value yet; write the type of the value",
    collections.deque: "is not known to JSON; write list[...]",
    collections.defaultdict: "is not known to JSON; write dict[str, ...]",
    collections.OrderedDict: "is not known to JSON; write dict[str, ...]",
    collections.Counter: "is not known to JSON; write dict[str, int]",
    range: "is not known to JSON; write list[int]",
    memoryview: "is not known to JSON; write bytes",
    typing.NoReturn: "is no value; write None",
    typing.Never: "is no value; write None",
}
_OPEN_FILES = frozenset({"IO", "TextIO", "BinaryIO"})


def name_of(annotation: Any) -> str:
    """A type's name as its author would write it."""
    return annotation.__name__ if type(annotation) is type else str(annotation)


def refusal(annotation: Any) -> str:
    """Why *annotation* cannot be served and what to write instead."""
    origin = typing.get_origin(annotation) or annotation
    name = name_of(annotation)
    try:
        instead = _INSTEAD.get(origin)
    except TypeError:
        instead = None
    if instead is not None:
        return f"{name} {instead}"
    if getattr(origin, "__name__", "") in _OPEN_FILES or hasattr(origin, "readline"):
        return f"{name} is an open file; write bytes or str for what is in it"
    base = _simple_base(origin)
    if base is not None:
        return f"{name} is a kind of {base} that JSON does not know; write {base}"
    return f"{name} is not a type that JSON knows; make it a dataclass or write str"


def _simple_base(origin: Any) -> str | None:
    bases = (str, bytes, int, float, list, dict, set, tuple)
    found = (
        base.__name__ for base in bases if isinstance(origin, type) and issubclass(origin, base)
    )
    return next(found, None)
