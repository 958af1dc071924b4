"""A record's members by their JSON names: of a class, and of an object, without encoding it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .record_fields import style_of


def member_names(cls: Any) -> dict[str, str]:
    """Return the names of a class's attributes by their JSON names; empty if it is no record."""
    match style_of(cls):
        case "struct" if not cls.__struct_config__.array_like:
            return dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
        case "dataclass":
            return {name: name for name in cls.__dataclass_fields__}
        case "attrs":
            return {each.name: each.name for each in cls.__attrs_attrs__}
        case "typeddict":
            return {name: name for name in cls.__annotations__}
    fields = getattr(cls, "model_fields", None)
    if not isinstance(cls, type) or not isinstance(fields, dict) or not hasattr(cls, "model_dump"):
        return {}
    return {each.serialization_alias or each.alias or name: name for name, each in fields.items()}


def object_members(value: object) -> dict[str, Any]:
    """Return an object's members by their JSON names; empty if it is no record."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    found = {name: getattr(value, own, None) for name, own in member_names(type(value)).items()}
    return {name: each for name, each in found.items() if each is not msgspec.UNSET}
