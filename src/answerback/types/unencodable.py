"""Where a value holds what JSON cannot: found by going over it, once encoding has failed."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from .encoding import ENCODER, UnknownToJson
from .json_text import DEEPEST
from .problems import InvalidOutput, item, member


def find_fault(value: Any) -> InvalidOutput | None:
    """The first fault in *value*; what an author's own code raised is its cause."""
    return _find(value, "", ())


def _fault(path: str, message: str, cause: Exception | None = None) -> InvalidOutput:
    fault = InvalidOutput(path, message)
    fault.__cause__ = cause
    return fault


def _find(value: Any, path: str, above: tuple[int, ...]) -> InvalidOutput | None:
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return _fault(path, "a number that is not finite")
    try:
        inside = list(_inside(value, path))
    except Exception as error:  # noqa: BLE001 - an author's property may raise anything
        return _fault(path, f"{type(value).__name__} cannot be read", error)
    if not inside:
        return _leaf_fault(value, path)
    if id(value) in above:
        return _fault(path, "a cycle: the value holds itself")
    if len(above) >= DEEPEST:
        return _fault(path, f"nested deeper than {DEEPEST} levels")
    for below, key, each in inside:
        fault = _key_fault(key, below) or _find(each, below, (*above, id(value)))
        if fault is not None:
            return fault
    return None


def _inside(value: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(value, dict):
        yield from ((member(path, key), key, each) for key, each in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((item(path, n), n, each) for n, each in enumerate(value))
    elif hasattr(value, "__pydantic_serializer__"):
        yield from ((member(path, name), name, each) for name, each in _model_items(value))
    elif not isinstance(value, type):
        for name in _fields(value):
            if hasattr(value, name):
                yield member(path, name), name, getattr(value, name)


def _model_items(value: Any) -> Iterator[tuple[str, Any]]:
    from .pydantic_types import dump, taken_apart

    dumped, held = dump(value), taken_apart(value)
    if not isinstance(dumped, dict) or not isinstance(held, dict):
        yield "root", dumped
        return
    yield from dumped.items()
    # pydantic writes some of the numbers that are not finite as null, as msgspec does.
    numbers = (float, Decimal, list, dict)
    yield from ((name, each) for name, each in held.items() if isinstance(each, numbers))


def _fields(value: Any) -> Iterator[str]:
    kind = type(value)
    yield from getattr(kind, "__struct_fields__", ())
    yield from getattr(kind, "__dataclass_fields__", ())
    yield from (field.name for field in getattr(kind, "__attrs_attrs__", ()))


def _key_fault(key: Any, path: str) -> InvalidOutput | None:
    try:
        ENCODER.encode({key: None})
    except Exception:  # noqa: BLE001 - whatever it raises, it is no key
        return _fault(path, f"a key of type {type(key).__name__}, which JSON cannot write")
    return None


def _leaf_fault(value: Any, path: str) -> InvalidOutput | None:
    try:
        ENCODER.encode(value)
    except UnicodeEncodeError:
        return _fault(path, "text with half a surrogate pair, which is no Unicode")
    except UnknownToJson:
        return _fault(path, f"{type(value).__name__} cannot be written as JSON")
    except Exception as error:  # noqa: BLE001 - msgspec's, or an author's class's
        # Not the error's text: it may hold the value.
        return _fault(path, f"{type(value).__name__} cannot be written as JSON", error)
    return None
