"""Names for JSON values in annotations, and checks of their kinds."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = object
"""A value that JSON can express. A reader must find out its kind: `isinstance(…, dict)`.

A recursive type would say more, but msgspec has none, and lists and dicts of one do not match
those of another.
"""
JsonObject: TypeAlias = dict[str, Any]
"""An object. Its members are checked where they are read, so they need no casts."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether it is a number: in Python a bool is an int, in JSON true is not a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether it is an int but not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)
