"""The names of JSON values in annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = object
"""A value that JSON can express. A reader must find out which kind it is: `isinstance(…, dict)`.

A recursive type would say more, but msgspec has none, and lists and dicts of one do not match
those of another.
"""
JsonObject: TypeAlias = dict[str, Any]
"""An object. Its members are checked where they are read, so they need no casts."""
