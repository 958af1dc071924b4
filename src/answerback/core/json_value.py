"""Type aliases for JSON values, and checks for their types."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = object
"""A value that JSON can express. Check its type before use: `isinstance(…, dict)`.

A recursive type would say more, but msgspec does not support one, and type checkers do not accept
a `list[str]` or `dict[str, str]` for it.
"""
JsonObject: TypeAlias = dict[str, Any]
"""An object. Its members are checked where they are read, so they need no casts."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether *value* is a JSON number; a bool is an int in Python, but not in JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether *value* is an int but not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)
